"""Losses that Keras' layers add while they are called: results beside the result.

They are in lists of the layers, where a regularizer of activities puts its own too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...core.reach import reached


class Losses:
    """The layers that a function reaches, and what they add to their losses."""

    def __init__(self, *roots: Any) -> None:
        keras = sys.modules.get("keras")
        layer = getattr(keras, "Layer", ())
        self.outer = list(reached(*roots, stop=lambda x: isinstance(x, layer)))

    def _lists(self) -> list[list[Any]]:
        layers = [each for outer in self.outer for each in outer._flatten_layers()]
        return list({id(each): each._losses for each in layers}.values())

    def beside(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """A function that returns what it adds, too."""

        def run(*args: Any, **kwargs: Any) -> Any:
            before = {id(x): x for losses in self._lists() for x in losses}
            result = fn(*args, **kwargs)
            lists = self._lists()
            added = [x for losses in lists for x in losses if id(x) not in before]
            return result, added

        return run

    def replace(self, old: list[Any], new: list[Any]) -> None:
        """Put tensors that have a gradient in the place of those that have none."""
        by_id = {id(x): y for x, y in zip(old, new, strict=True)}
        for losses in self._lists():
            losses[:] = [by_id.get(id(x), x) for x in losses]

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Let them be afterwards what they were."""
        before = [(losses, list(losses)) for losses in self._lists()]
        try:
            yield
        finally:
            for losses, values in before:
                losses[:] = values
