"""Arrays of which only shape and dtype are known, as the engine has to know of them."""

from __future__ import annotations

from typing import Any

import numpy as np


class Symbolic:
    """Stands for an array in a function that is traced; `program` makes them.

    To the engine it is one more plain array: NumPy's functions take it by NumPy's
    protocols. It has no elements to look at.
    """

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        raise NotImplementedError

    @property
    def dtype(self) -> np.dtype[Any]:
        raise NotImplementedError

    def __array_function__(self, fn: Any, types: Any, args: Any, kwargs: Any) -> Any:
        raise NotImplementedError

    @property
    def base(self) -> Any:
        """What it is a view of, or may be; None for an array of its own."""
        raise NotImplementedError

    def copy(self) -> Any:
        """The same in memory of its own."""
        raise NotImplementedError

    def readonly(self) -> Any:
        """A view of it that can't be written into."""
        raise NotImplementedError

    def overflowing(self, overflows: bool = True) -> Any:
        """The same array, whose infinite elements stand for large numbers, or not."""
        raise NotImplementedError

    def called(
        self, fn: Any, arrays: Any, specs: Any, *, in_list: bool = False
    ) -> list[Any]:
        """What a function of arrays gives that nobody can see into, by its specs.

        `in_list` says that it returns a list, also of one result.
        """
        raise NotImplementedError


PLAIN: tuple[type, ...] = (np.ndarray, np.generic, Symbolic)  # what tensors hold


def seen_any(x: Any) -> bool:
    """Whether an element is seen to hold; of a symbolic array none is seen.

    For checks that raise: what depends on more than shapes and dtypes is not decided
    by elements, so that a rule can be traced.
    """
    return not is_symbolic(x) and bool(np.any(getattr(x, "value", x)))


def is_symbolic(x: Any) -> bool:
    """Whether an array, or that of a tensor, has no elements to look at."""
    return isinstance(getattr(x, "value", x), Symbolic)


def as_plain(x: Any) -> Any:
    """An array of anything that NumPy can read; a symbolic one as it is."""
    return x if isinstance(x, Symbolic) else np.asarray(x)
