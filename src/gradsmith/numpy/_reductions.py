"""Reductions: many elements to one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..frameworks._dtypes import inexact_of, name_of, total_of
from . import _elementwise as e
from ._axes import axes_of
from ._choosing import as_bool, where
from ._dispatch import portable
from ._operands import operand


def _converted(K: Any, x: Any, dtype: Any, rule: Any) -> Any:
    """The array in the dtype asked for, or in that which a rule gives for its own."""
    if dtype is None and K.is_float(x):  # 0.8 us less
        return x
    x = operand(K, x)
    return K.cast(x, rule(K.kind(x)) if dtype is None else name_of(dtype))


@portable(np.sum)
def sum(
    K: Any, x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False
) -> Any:
    """The sum along axes; whole numbers add up in 64 bits.

    >>> sum(np.array([[1.0, 2.0], [3.0, 4.0]]), axis=1)
    array([3., 7.])
    """
    x = _converted(K, x, dtype, total_of)
    axes = axes_of(axis, K.ndim(x))
    return K.sum(x, axes, keepdims) if axes else x


@portable(np.prod)
def prod(
    K: Any, x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False
) -> Any:
    """The product along axes; whole numbers multiply in 64 bits.

    >>> float(prod(np.array([2.0, 3.0])))
    6.0
    """
    x = _converted(K, x, dtype, total_of)
    axes = axes_of(axis, K.ndim(x))
    return K.prod(x, axes, keepdims) if axes else x


@portable(np.mean)
def mean(
    K: Any, x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False
) -> Any:
    """The mean along axes; of whole numbers in float64.

    >>> float(mean(np.array([1, 2])))
    1.5
    """
    x = _converted(K, x, dtype, inexact_of)
    axes = axes_of(axis, K.ndim(x))
    return K.mean(x, axes, keepdims) if axes else x


@portable(np.var)
def var(
    K: Any,
    x: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    correction: float | None = None,
) -> Any:
    """The variance along axes: the sum of squares over n - ddof.

    >>> float(var(np.array([1.0, 3.0]), correction=1))
    2.0
    """
    if correction is not None:
        if ddof != 0:
            raise ValueError("ddof and correction are two names of one option")
        ddof = correction
    x = _converted(K, x, dtype, inexact_of)
    axes = axes_of(axis, K.ndim(x))
    off = e.subtract(x, mean(x, axes, keepdims=True))
    if K.kind(x).startswith("complex"):
        off = e.absolute(off)
    squares = sum(e.square(off), axes, keepdims=keepdims)
    return e.divide(squares, K.degrees_of_freedom(x, axes, ddof))


@portable(np.std)
def std(
    K: Any,
    x: Any,
    /,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: float = 0,
    keepdims: bool = False,
    correction: float | None = None,
) -> Any:
    """The standard deviation along axes: the root of the variance.

    >>> float(std(np.array([1.0, 3.0])))
    1.0
    """
    options: Any = {"ddof": ddof, "keepdims": keepdims, "correction": correction}
    return root(var(x, axis, dtype, **options))


def root(x: Any, n: float = 2) -> Any:
    """The n-th root of a sum of powers; where all are 0, so is the derivative."""
    zero = e.equal(x, 0)
    inside = where(zero, 1, x)
    return where(zero, 0, e.sqrt(inside) if n == 2 else e.power(inside, 1 / n))


@portable(np.max)
def max(K: Any, x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """The greatest along axes; NaN if there is one.

    >>> max(np.array([[1.0, 2.0], [3.0, 0.0]]), axis=0)
    array([3., 2.])
    """
    x = operand(K, x)
    axes = axes_of(axis, K.ndim(x))
    _refuse_empty(K, x, axes)
    return K.max(x, axes, keepdims) if axes else x


@portable(np.min)
def min(K: Any, x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """The least along axes; NaN if there is one.

    >>> float(min(np.array([2.0, 1.0])))
    1.0
    """
    x = operand(K, x)
    axes = axes_of(axis, K.ndim(x))
    _refuse_empty(K, x, axes)
    return K.min(x, axes, keepdims) if axes else x


amax, amin = max, min


def _refuse_empty(K: Any, x: Any, axes: tuple[int, ...]) -> None:
    if K.is_empty(x) and 0 in [K.shape(x)[i] for i in axes]:
        raise ValueError("max and min of no elements are no numbers")


@portable(np.ptp)
def ptp(K: Any, x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """The greatest minus the least along axes.

    >>> float(ptp(np.array([2.0, 5.0])))
    3.0
    """
    return e.subtract(max(x, axis, keepdims=keepdims), min(x, axis, keepdims=keepdims))


@portable(np.any)
def any(K: Any, x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Whether an element along the axes is not 0.

    >>> bool(any(np.array([0, 1])))
    True
    """
    x = as_bool(K, x)
    axes = axes_of(axis, K.ndim(x))
    return K.any(x, axes, keepdims) if axes else x


@portable(np.all)
def all(K: Any, x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Whether no element along the axes is 0.

    >>> bool(all(np.array([0, 1])))
    False
    """
    x = as_bool(K, x)
    axes = axes_of(axis, K.ndim(x))
    return K.all(x, axes, keepdims) if axes else x


@portable(np.count_nonzero)
def count_nonzero(
    K: Any, x: Any, /, axis: Any = None, *, keepdims: bool = False
) -> Any:
    """How many elements along the axes are not 0.

    >>> int(count_nonzero(np.array([0, 1, 2])))
    2
    """
    x = as_bool(K, x)
    axes = axes_of(axis, K.ndim(x))
    return K.count(x, axes, keepdims) if axes else K.cast(x, "int64")
