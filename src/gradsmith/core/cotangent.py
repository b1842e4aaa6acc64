"""Bring a cotangent or a tangent to the shape and dtype of the value it belongs to."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from .infinite import Infinite
from .pool import is_held_once, references, zeros
from .shapes import broadcast_axes
from .tape import Deferred


class Spec:
    """The shape and dtype of an array, standing in for one that was not saved."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Any, dtype: np.dtype[Any]) -> None:
        # Lengths; in a graph that leaves it open, None for one of them or for all
        self.shape = shape
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"Spec(shape={self.shape}, dtype={self.dtype})"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    def zeros(self) -> Any:
        return np.zeros(self.shape, self.dtype)

    def describes(self, x: Any) -> bool:
        """Whether x is an array of this shape and dtype."""
        return (
            getattr(x, "shape", None) == self.shape
            and getattr(x, "dtype", None) == self.dtype
        )


def spec_of(x: Any) -> Spec:
    """Return the spec of anything NumPy can read.

    >>> spec_of([1.0, 2.0])
    Spec(shape=(2,), dtype=float64)
    """
    if not hasattr(x, "dtype"):
        x = np.asarray(x)
    return Spec(x.shape, x.dtype)


def spec_text(x: Any) -> str:
    """The dtype and the shape of a value.

    >>> spec_text(Spec((2, 3), "float32"))
    'float32 (2, 3)'
    """
    return f"{x.dtype} {tuple(x.shape or ())}"


class Scattered(Deferred):
    """A cotangent that is zero but at the places `key`, where it is `values`.

    The walk adds it to what is there in place, if nobody else holds that: a loop over
    x[i] costs n, not n**2, and the maximum of 10**7 elements one pass.
    """

    __slots__ = ("distinct", "dtype", "key", "shape", "values")

    def __init__(
        self, key: Any, values: Any, shape: tuple[int, ...], *, distinct: bool
    ) -> None:
        self.key = key
        self.values = values
        self.shape = shape
        self.dtype = values.dtype
        self.distinct = distinct  # no element is named twice

    def dense(self) -> np.ndarray:
        total = np.zeros(self.shape, self.dtype)
        if not self.distinct:
            return self.added_to(total)
        total[self.key] = self.values  # half of the time of a sum with zeros
        return total.view(Infinite) if isinstance(self.values, Infinite) else total

    def added_to(self, total: Any) -> Any:
        """The sum of both; `total` is given away by the caller."""
        if isinstance(total, Scattered):
            return self._written_into(total.dense())
        if not isinstance(total, np.ndarray):  # a tensor, which is not changed
            return total + self.dense()
        return self._written_into(total if is_held_once(total, _HELD) else total.copy())

    def _written_into(self, total: Any) -> Any:
        if self.distinct:
            _add_at(total, self.key, self.values)
        else:
            np.add.at(total, self.key, self.values)
        return total.view(Infinite) if isinstance(self.values, Infinite) else total

    def __add__(self, other: Any) -> Any:
        return self.added_to(other)


# Functions whose pullback takes a cotangent that is zero but in one column of each row
TAKES_ROWS: set[Any] = set()


class OnePerRow(Scattered):
    """A cotangent of a matrix that is zero but in one column of each row.

    That of the minima of 10,000 rows of 100 numbers is, and so are those of what is
    added up in the rows. Its products take as long as those of its 10,000 elements: a
    step of large k-means (python -m benchmarks gradbench) takes 0.7 of the time.
    """

    __slots__ = ("columns",)

    def __init__(self, columns: Any, values: Any, shape: tuple[int, ...]) -> None:
        rows = np.arange(shape[0])
        super().__init__((rows, columns), values, shape, distinct=True)
        self.columns = columns

    def given_to(self, rule: Any) -> Any:
        return self if getattr(rule, "fn", None) in TAKES_ROWS else self.dense()

    def __mul__(self, number: float) -> OnePerRow:
        return OnePerRow(self.columns, self.values * number, self.shape)

    def dense(self) -> np.ndarray:
        total = zeros(self.shape, self.dtype)
        total[self.key] = self.values
        return total

    def summed_to(self, shape: tuple[int, ...]) -> Any:
        """The sum over the axes along which `shape` was broadcast."""
        if shape == (self.shape[0], 1):
            return self.values.reshape(shape)
        if shape[-1:] != self.shape[1:] or prod(shape) != shape[-1]:
            return unbroadcast(self.dense(), shape)
        return self._in_columns(self.values).reshape(shape)

    def times(self, x: np.ndarray) -> np.ndarray:
        """The matrix times another one."""
        return x[self.columns] * self.values.reshape(-1, 1)

    def under(self, x: np.ndarray) -> np.ndarray:
        """The transpose of another one times the matrix."""
        y = np.empty((x.shape[1], self.shape[1]), self.dtype)
        for j, line in enumerate(np.multiply(x.T, self.values, order="C")):
            y[j] = self._in_columns(line)
        return y

    def _in_columns(self, x: Any) -> Any:
        """For each column the sum of the numbers of its rows, in float64."""
        total = np.bincount(self.columns, x, self.shape[1])
        return total.astype(self.dtype, copy=False)


def _given(total: np.ndarray) -> int:
    return references(total)


_HELD = _given([np.empty(1)].pop())  # one more than elsewhere if this is compiled


def _add_at(total: np.ndarray, key: Any, values: Any) -> None:
    """total[key] += values, where the key names no element twice.

    Narrow columns are added one by one: 3 of 11 with 31,843 rows take 83 us so, at once
    191, since NumPy's innermost loop is along the rows.
    """
    if key.__class__ is tuple and all(part.__class__ is slice for part in key):
        part: Any = total[key]  # a view
        shape = part.shape
        narrow = len(shape) > 1 and 1 < shape[-1] <= 4 and part.size >= LONG
        if narrow and values.shape == shape:
            for j in range(shape[-1]):
                part[..., j] += values[..., j]
            return
    total[key] += values


LONG = 4000  # elements


# For arrays of NumPy's: 0.1 us instead of 1. PyTorch's compiler warns of caches.
_known_axes = lru_cache(maxsize=1024)(broadcast_axes)

MANY = 200  # rows in all


def stack_of_rows(x: Any, axes: Any) -> tuple[int, int, int] | None:
    """The shape of a stack of matrices whose rows a sum over some axes adds up.

    None unless their product with ones is faster: of 25 x 1000 x 10 elements it takes
    75 us, NumPy's sum 440; of 5 x 100 x 2 elements 1 and 6.
    """
    if x.dtype.kind != "f" or x.dtype.itemsize not in (4, 8) or x.size < 2 * MANY:
        return None
    axes = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
    return None if not axes or None in axes else _known_stack(x.shape, axes)


def _stack(shape: tuple[int, ...], axes: Any) -> tuple[int, int, int] | None:
    ndim = len(shape)
    first, last = axes[0] % ndim, axes[-1] % ndim
    if last == ndim - 1:  # one column
        return None
    if [axis % ndim for axis in axes] != [*range(first, last + 1)]:
        return None
    lengths = shape[:first], shape[first : last + 1], shape[last + 1 :]
    before, rows, columns = map(prod, lengths)
    pays = rows >= 16 and before * rows >= MANY and 1 < columns <= 128
    return (before, rows, columns) if pays else None


_known_stack = lru_cache(maxsize=1024)(_stack)  # 0.1 us instead of 0.7


@lru_cache(maxsize=32)
def _ones(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Ones to multiply with, which nobody changes: 0.1 us instead of 1.5."""
    ones = np.ones(shape, dtype)
    ones.flags.writeable = False
    return ones


def are_short_rows(x: Any) -> bool:
    """Whether the sums of rows are faster as a product with ones.

    Of 31,843 rows of 3 elements it takes 18 us, NumPy's sum 328; of 100 rows of 2 they
    take 1.3 and 1.9.
    """
    return (
        x.size >= MANY
        and 1 < x.shape[-1] <= 128
        and x.dtype.char in "fd"
        and x.flags.c_contiguous
    )


def unbroadcast(dy: Any, shape: tuple[int, ...]) -> Any:
    """Sum a cotangent over the axes along which `shape` was broadcast.

    >>> unbroadcast(np.ones((4, 3)), (3,))
    array([4., 4., 4.])
    """
    if dy.shape == shape:
        return dy
    if (
        dy.__class__ is np.ndarray and dy.dtype.kind != "O"
    ):  # np.sum and np.reshape take 3 us more
        axes = _known_axes(dy.shape, shape)
        if axes == (dy.ndim - 1,) and are_short_rows(dy):
            ones = _ones((dy.shape[-1],), dy.dtype)
            return dy.reshape(-1, len(ones)).dot(ones).reshape(shape)
        rows = dy.size >= 2 * MANY and axes[-1] != dy.ndim - 1
        stack = stack_of_rows(dy, axes) if rows else None
        if stack is not None and dy.flags.c_contiguous:
            ones = (_ones if stack[1] <= LONG else np.ones)((1, stack[1]), dy.dtype)
            return np.matmul(ones, dy.reshape(stack)).reshape(shape)
        return np.add.reduce(dy, axes).reshape(shape)
    if dy.__class__ is OnePerRow:
        return dy.summed_to(shape)
    return np.reshape(np.sum(dy, axis=broadcast_axes(dy.shape, shape)), shape)


def cast(dx: Any, dtype: np.dtype[Any]) -> Any:
    """Bring a cotangent or tangent to a dtype.

    What belongs to a real value is real: the part of a complex cotangent that a real
    change of the value can see.
    """
    if dx.dtype == dtype:
        return dx
    if isinstance(dx, Deferred):
        dx = dx.dense()
    if dx.dtype.kind == "c" and dtype.kind != "c":
        dx = np.real(dx)
    return dx.astype(dtype)


def project(dx: Any, like: Any) -> Any:
    """Bring the cotangent of a value to that value's shape and dtype."""
    if dx.shape == like.shape and dx.dtype is like.dtype:  # most often
        return dx
    return cast(unbroadcast(dx, like.shape), like.dtype)
