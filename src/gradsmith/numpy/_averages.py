"""Means with weights, and reductions that pass over NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..frameworks._dtypes import inexact_of, is_inexact, real_of
from . import _elementwise as e
from ._axes import axes_of
from ._choosing import where
from ._dispatch import portable
from ._operands import operand
from ._reductions import count_nonzero, mean, prod, sum


def _average(x: Any, axis: Any = None, weights: Any = None, **options: Any) -> Any:
    return np.average(x, axis, weights, **options)


@portable(_average)
def average(
    K: Any,
    x: Any,
    /,
    axis: Any = None,
    weights: Any = None,
    *,
    keepdims: bool = False,
) -> Any:
    """The mean with weights, of x's shape or, along one axis, of its length.

    >>> float(average(np.array([1.0, 4.0]), weights=np.array([2.0, 1.0])))
    2.0
    """
    if weights is None:
        return mean(x, axis, keepdims=keepdims)
    x, weights = operand(K, x, weights), operand(K, weights, x)
    name = K.result_type(inexact_of(K.kind(x)), K.kind(weights))
    x, weights = K.cast(x, name), K.cast(weights, name)
    ndim = K.ndim(x)
    if K.ndim(weights) != ndim:
        axes = axes_of(axis, ndim)
        if K.ndim(weights) != 1 or len(axes) != 1:
            raise ValueError("weights has the shape of x, or that of x along one axis")
        shape = [1] * ndim
        shape[axes[0]] = -1
        weights = K.reshape(weights, tuple(shape))
    total = sum(e.multiply(weights, K.ones_like(x)), axis, keepdims=keepdims)
    return e.divide(sum(e.multiply(x, weights), axis, keepdims=keepdims), total)


def _without_nan(K: Any, x: Any, fill: float) -> Any:
    return where(e.isnan(x), fill, x) if is_inexact(K.kind(x)) else x


@portable(np.nansum)
def nansum(
    K: Any, x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False
) -> Any:
    """The sum along axes of what is not NaN.

    >>> float(nansum(np.array([1.0, np.nan])))
    1.0
    """
    return sum(_without_nan(K, x, 0), axis, dtype, keepdims=keepdims)


@portable(np.nanprod)
def nanprod(
    K: Any, x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False
) -> Any:
    """The product along axes of what is not NaN.

    >>> float(nanprod(np.array([2.0, np.nan])))
    2.0
    """
    return prod(_without_nan(K, x, 1), axis, dtype, keepdims=keepdims)


@portable(np.nanmean)
def nanmean(
    K: Any, x: Any, /, axis: Any = None, dtype: Any = None, *, keepdims: bool = False
) -> Any:
    """The mean along axes of what is not NaN.

    >>> float(nanmean(np.array([2.0, np.nan])))
    2.0
    """
    if not is_inexact(K.kind(x)):
        return mean(x, axis, dtype, keepdims=keepdims)
    total = nansum(x, axis, dtype, keepdims=keepdims)
    n = count_nonzero(e.logical_not(e.isnan(x)), axis, keepdims=keepdims)
    return e.divide(total, K.cast(n, real_of(K.kind(total))))
