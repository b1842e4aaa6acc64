"""Order and positions: sorting, where the greatest is, running totals."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..frameworks._dtypes import inexact_of, is_inexact, name_of, total_of
from . import _elementwise as e
from ._axes import one_axis
from ._choosing import where
from ._dispatch import portable
from ._operands import operand, promoted
from ._reductions import any, mean


def _lined_up(K: Any, x: Any, axis: int | None) -> tuple[Any, int]:
    """The array and the axis; None stands for the only one of all elements in a row."""
    x = operand(K, x)
    if axis is None:
        return K.reshape(x, (-1,)), 0
    return x, one_axis(axis, K.ndim(x))


def _position(K: Any, find: Any, x: Any, axis: int | None, keepdims: bool) -> Any:
    x = operand(K, x)
    ndim = K.ndim(x)
    line, i = _lined_up(K, x, axis)
    y = K.cast(find(line, i), "int64")
    if not keepdims:
        return y
    return K.reshape(y, (1,) * ndim) if axis is None else K.expand_dims(y, i)


@portable(np.argmax)
def argmax(
    K: Any, x: Any, /, axis: int | None = None, *, keepdims: bool = False
) -> Any:
    """The first position of the greatest, or of the first NaN, as int64.

    >>> int(argmax(np.array([1.0, 3.0, 3.0])))
    1
    """
    return _position(K, K.argmax, x, axis, keepdims)


@portable(np.argmin)
def argmin(
    K: Any, x: Any, /, axis: int | None = None, *, keepdims: bool = False
) -> Any:
    """The first position of the least, or of the first NaN, as int64.

    >>> int(argmin(np.array([1.0, 0.0, 0.0])))
    1
    """
    return _position(K, K.argmin, x, axis, keepdims)


@portable(np.cumsum)
def cumsum(K: Any, x: Any, /, axis: int | None = None, dtype: Any = None) -> Any:
    """The sums of the elements so far; along all of them in a row if axis is None.

    >>> cumsum(np.array([1, 2, 3]))
    array([1, 3, 6])
    """
    x, i = _lined_up(K, x, axis)
    name = total_of(K.kind(x)) if dtype is None else name_of(dtype)
    return K.cumsum(K.cast(x, name), i)


@portable(np.cumprod)
def cumprod(K: Any, x: Any, /, axis: int | None = None, dtype: Any = None) -> Any:
    """The products of the elements so far.

    >>> cumprod(np.array([1, 2, 3]))
    array([1, 2, 6])
    """
    x, i = _lined_up(K, x, axis)
    name = total_of(K.kind(x)) if dtype is None else name_of(dtype)
    return K.cumprod(K.cast(x, name), i)


@portable(np.diff)
def diff(K: Any, x: Any, /, n: int = 1, axis: int = -1) -> Any:
    """The differences of neighbours, n times over.

    >>> diff(np.array([1.0, 4.0, 9.0]))
    array([3., 5.])
    """
    i = one_axis(axis, K.ndim(x))
    before = (slice(None),) * i
    minus = "not_equal" if K.kind(x) == "bool" else "subtract"
    for _ in range(n):
        later, earlier = x[(*before, slice(1, None))], x[(*before, slice(None, -1))]
        x = K.ELEMENTWISE[minus](later, earlier)
    return x


@portable(np.sort)
def sort(K: Any, x: Any, /, axis: int | None = -1, *, stable: bool = True) -> Any:
    """The elements in ascending order, NaN last.

    >>> sort(np.array([3.0, 1.0, 2.0]))
    array([1., 2., 3.])
    """
    x, i = _lined_up(K, x, axis)
    return K.sort(x, i)


def _argsort(x: Any, axis: int | None = -1, *, stable: bool = True) -> Any:
    return np.argsort(x, axis, stable=stable)


@portable(_argsort)
def argsort(K: Any, x: Any, /, axis: int | None = -1, *, stable: bool = True) -> Any:
    """The positions of the elements in ascending order; equal ones keep theirs.

    >>> argsort(np.array([3.0, 1.0, 2.0]))
    array([1, 2, 0])
    """
    x, i = _lined_up(K, x, axis)
    return K.cast(K.argsort(x, i), "int64")


@portable(np.searchsorted)
def searchsorted(K: Any, x1: Any, x2: Any, /, side: str = "left") -> Any:
    """Where the elements of x2 belong in x1, which is sorted and has one axis.

    >>> searchsorted(np.array([1.0, 2.0, 3.0]), 2.0, side="right")
    np.int64(2)
    """
    if side not in ("left", "right"):
        raise ValueError(f"side is 'left' or 'right', not {side!r}")
    x1, x2 = promoted(K, x1, x2)
    if K.ndim(x1) != 1:
        raise ValueError(f"searchsorted looks in one axis, not in {K.ndim(x1)}")
    return K.cast(K.searchsorted(x1, x2, side), "int64")


def _median(x: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    return np.median(x, axis, keepdims=keepdims)


@portable(_median)
def median(
    K: Any, x: Any, /, axis: int | None = None, *, keepdims: bool = False
) -> Any:
    """The middle of the sorted elements, or the mean of the two that are.

    >>> float(median(np.array([5.0, 1.0, 2.0])))
    2.0
    """
    line, i = _lined_up(K, x, axis)
    line = K.sort(K.cast(line, inexact_of(K.kind(line))), i)
    n = K.shape(line)[i]
    middle = line[(slice(None),) * i + (slice((n - 1) // 2, n // 2 + 1),)]
    y = mean(middle, i, keepdims=True)
    if is_inexact(K.kind(line)):
        y = where(any(e.isnan(line), i, keepdims=True), float("nan"), y)
    if axis is None:
        return K.reshape(y, (1,) * K.ndim(x) if keepdims else ())
    return y if keepdims else K.squeeze(y, (i,))
