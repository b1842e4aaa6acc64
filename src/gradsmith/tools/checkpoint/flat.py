"""A call as a function of its arrays alone, and what it returns put together again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core import trees
from .hidden import require_open


class Flat:
    """`fn(*args, **kwargs)` as a function from arrays to a list of arrays.

    All else, in the arguments and in the result, stays as it is. `is_array` says what
    counts as an array.
    """

    def __init__(
        self, fn: Callable[..., Any], args: Any, kwargs: Any, is_array: Any
    ) -> None:
        self.fn = fn
        self.call = (args, kwargs)
        self.is_array = is_array
        named = [*trees.leaves_with_names(args, "args")]
        named += [
            pair
            for key, value in kwargs.items()
            for pair in trees.leaves_with_names(value, key)
        ]
        self.names = [name for name, x in named if is_array(x)]
        leaves = [x for _, x in named]
        self.arrays = [x for x in leaves if is_array(x)]
        self.rest = [None if is_array(x) else x for x in leaves]
        self.places = [i for i, x in enumerate(leaves) if is_array(x)]
        self.result: Any = None  # with None in place of the arrays

    def __call__(self, *arrays: Any) -> list[Any]:
        return self.of(self.fn, arrays)

    def of(self, fn: Callable[..., Any], arrays: Sequence[Any]) -> list[Any]:
        """The same call of another function."""
        leaves = list(self.rest)
        for i, x in zip(self.places, arrays, strict=True):
            leaves[i] = x
        args, kwargs = trees.unflatten(self.call, leaves)
        result = fn(*args, **kwargs)
        ys = trees.leaves(result)
        require_open(ys, self.is_array, name_of(self.fn), self.fn, args, kwargs)
        found = [y for y in ys if self.is_array(y)]
        self.result = trees.map(lambda y: _HERE if self.is_array(y) else y, result)
        return found

    def restored(self, arrays: list[Any]) -> Any:
        """The last result, with these arrays in it."""
        rest = iter(arrays)
        return trees.map(lambda y: next(rest) if y is _HERE else y, self.result)


_HERE: Any = object()


def name_of(fn: Any) -> str:
    return getattr(fn, "__name__", None) or type(fn).__name__
