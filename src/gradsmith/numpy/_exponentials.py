"""Sums of exponentials, and shares of them: NumPy alone can do these."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..frameworks._dtypes import inexact_of
from . import _elementwise as e
from ._axes import axes_of, one_axis
from ._choosing import where
from ._dispatch import portable
from ._operands import operand
from ._reductions import max, sum
from ._shaping import size, squeeze
from ._stopping import stop_gradient
from ._types import astype


def _greatest(x: Any, axis: Any) -> Any:
    """The greatest as a constant that cancels; 0 where it is infinite or none."""
    n = size(x)
    if isinstance(n, int) and n == 0:
        return 0
    top = stop_gradient(max(x, axis, keepdims=True))
    return where(e.isfinite(top), top, 0)


def _logsumexp(
    x: Any, axis: Any = None, b: Any = None, *, keepdims: bool = False
) -> Any:
    top = _greatest(x, axis)
    terms = e.exp(e.subtract(x, top))
    total = sum(terms if b is None else e.multiply(b, terms), axis, keepdims=True)
    y = e.add(e.log(total), top)
    if keepdims:
        return y
    return squeeze(y, tuple(range(np.ndim(y))) if axis is None else axis)


def _softmax(x: Any, axis: Any = None) -> Any:
    top = stop_gradient(max(x, axis, keepdims=True))
    terms = e.exp(e.subtract(x, top))
    return e.divide(terms, sum(terms, axis, keepdims=True))


def _log_softmax(x: Any, axis: Any = None) -> Any:
    off = e.subtract(x, _greatest(x, axis))
    return e.subtract(off, e.log(sum(e.exp(off), axis, keepdims=True)))


def _for_numpy(formula: Any) -> Any:
    """Whole numbers in float64, and no warning that log(0) is minus infinity."""

    def call(x: Any, *args: Any, **options: Any) -> Any:
        name = x.dtype.name if hasattr(x, "dtype") else np.asarray(x).dtype.name
        with np.errstate(divide="ignore"):
            return formula(astype(x, inexact_of(name)), *args, **options)

    return call


def _inexact(K: Any, x: Any) -> Any:
    x = operand(K, x)
    return K.cast(x, inexact_of(K.kind(x)))


@portable(_for_numpy(_logsumexp))
def logsumexp(
    K: Any, x: Any, /, axis: Any = None, b: Any = None, *, keepdims: bool = False
) -> Any:
    """log(sum(b * exp(x))) along axes without overflow.

    >>> float(logsumexp(np.array([1000.0, 1000.0]))) - 1000
    0.693147180559...
    """
    if b is not None:
        return _logsumexp(_inexact(K, x), axis, b, keepdims=keepdims)
    x = _inexact(K, x)
    axes = axes_of(axis, K.ndim(x))
    return K.logsumexp(x, axes, keepdims) if axes else x


@portable(_for_numpy(_softmax))
def softmax(K: Any, x: Any, /, axis: Any = None) -> Any:
    """exp(x) as shares of its sum along axes; of all elements if axis is None.

    >>> softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """
    x = _inexact(K, x)
    if isinstance(axis, int):
        return K.softmax(x, one_axis(axis, K.ndim(x)))
    return _softmax(x, axis)


@portable(_for_numpy(_log_softmax))
def log_softmax(K: Any, x: Any, /, axis: Any = None) -> Any:
    """log(softmax(x)) without underflow.

    >>> log_softmax(np.array([0.0, 0.0]))
    array([-0.69314718, -0.69314718])
    """
    x = _inexact(K, x)
    if isinstance(axis, int):
        return K.log_softmax(x, one_axis(axis, K.ndim(x)))
    return _log_softmax(x, axis)
