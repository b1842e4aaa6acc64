"""An operation on arrays of its framework."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...core import trees
from ...core.arrays import is_array
from ...operations.info import is_floating


@dataclass(frozen=True, eq=False)
class Body:
    """An operation on the framework's arrays: from those that are moved to the outputs.

    Two are equal if they compute the same, so that what was compiled can be kept.
    """

    call: Callable[..., Any]
    arrays: Any  # the part of the framework
    inputs: Any
    typed: Sequence[tuple[str, str]]
    held: frozenset[str]

    def __call__(self, xs: Sequence[Any]) -> list[Any]:
        moved, names = iter(xs), iter(self.typed)

        def leaf(x: Any) -> Any:
            if not isinstance(x, np.ndarray):
                return x
            name, dtype = next(names) if is_floating(x) else ("", str(x.dtype))
            if name and name not in self.held:
                return next(moved)
            return self.arrays.array(x, dtype)

        args, kwargs = trees.map(leaf, self.inputs)
        ys = floating(self.call(*args, **kwargs))
        if self.arrays.numbers_differentiable:
            return ys
        return [y for y in ys if is_array(y)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Body) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        moved = {name for name, _ in self.typed} - self.held
        names = iter(self.typed)

        def leaf(x: Any) -> Any:
            if not isinstance(x, np.ndarray):
                return x if type(x) in (int, float, str, bool, type(None)) else id(x)
            if is_floating(x) and next(names)[0] in moved:
                return "moved"
            return (x.shape, str(x.dtype), x.tobytes())

        named = trees.leaves_with_names(self.inputs)
        return (id(self.call), tuple((name, leaf(x)) for name, x in named))


def floating(tree: Any) -> list[Any]:
    """The outputs with a gradient; NumPy gives numbers for arrays without axes."""
    return [y for y in trees.leaves(tree) if is_floating(y)]
