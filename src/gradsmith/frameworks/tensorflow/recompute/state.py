"""What calling a function changes beside its result: variables, generators, losses."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from ....core.reach import reached
from ..._randomness import Streams
from ..private import global_seed, loss_lists

SEED = 20


@contextmanager
def unchanged(*roots: Any) -> Iterator[None]:
    """Let generators, variables and the losses of layers be what they were.

    TensorFlow's global random operations go on: their state is in kernels.
    """
    with (
        _values_kept(_variables_in(*roots)),
        Streams(*roots).unchanged(),
        Losses(*roots).unchanged(),
    ):
        yield


@contextmanager
def _values_kept(variables: list[Any]) -> Iterator[None]:
    before = [(x, tf.identity(x)) for x in variables]
    try:
        yield
    finally:
        for x, value in before:
            if not tf.reduce_all(tf.equal(x, value)):
                x.assign(value)


def rewinding(*roots: Any) -> Callable[[], Any]:
    """With a global seed, for what operations draw without any."""
    streams, states = (
        Streams(*roots),
        [x for x in _variables_in(*roots) if not x.dtype.is_floating],
    )

    @contextmanager
    def rewound() -> Iterator[None]:
        with _values_kept(states), streams.unchanged(), global_seed(SEED):
            yield

    return rewound


def _variables_in(*roots: Any) -> list[Any]:
    """Those that are reached by themselves, and all those of models."""
    has_some = lambda x: isinstance(x, (tf.Variable, tf.Module, _layer_class()))
    found = {}
    for x in reached(*roots, stop=has_some):
        for each in (x,) if isinstance(x, tf.Variable) else x.variables:
            variable = each if isinstance(each, tf.Variable) else each.value
            found[id(variable)] = variable
    return list(found.values())


def _layer_class() -> Any:
    return getattr(sys.modules.get("keras"), "Layer", ())


class Losses:
    """The losses that Keras' layers add while they are called, beside their results.

    They are in lists of the layers, where a regularizer of activities puts its own too.
    """

    def __init__(self, *roots: Any) -> None:
        layer = _layer_class()
        self.outer = list(reached(*roots, stop=lambda x: isinstance(x, layer)))

    def _lists(self) -> list[list[Any]]:
        lists = [each for outer in self.outer for each in loss_lists(outer)]
        return list({id(each): each for each in lists}.values())

    def returned_with(self, fn: Callable[..., Any]) -> Callable[..., Any]:
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
    def unchanged(self) -> Iterator[None]:
        """Let them be afterwards what they were."""
        before = [(losses, list(losses)) for losses in self._lists()]
        try:
            yield
        finally:
            for losses, values in before:
                losses[:] = values
