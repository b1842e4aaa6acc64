"""Sums of exponentials and logarithms: softmax, logsumexp, log1mexp, xlogy."""

from __future__ import annotations

from math import log
from typing import Any

from .. import numpy as gnp
from .._define import custom_gradient, operation
from ._inputs import like, require_axis, wide


@operation
def softmax(x: Any, axis: int = -1) -> Any:
    """exp(x) as shares of its sum; all 0 where every x is minus infinity."""
    require_axis("softmax", x, axis)
    e = gnp.exp(off_greatest(wide(x), axis)[0])
    return like(e / _one_for_zero(gnp.sum(e, axis=axis, keepdims=True)), x)


@softmax.vjp
def _(dy: Any, y: Any, x: Any, axis: int) -> Any:
    y, dz = wide(y), wide(dy)
    return like(y * (dz - gnp.sum(dz * y, axis=axis, keepdims=True)), dy)


@operation
def log_softmax(x: Any, axis: int = -1) -> Any:
    """log(softmax(x)) without underflow."""
    require_axis("log_softmax", x, axis)
    off, _ = off_greatest(wide(x), axis)
    total = gnp.sum(gnp.exp(off), axis=axis, keepdims=True)
    return like(off - gnp.log(_one_for_zero(total)), x)


@log_softmax.vjp
def _(dy: Any, y: Any, x: Any, axis: int) -> Any:
    dz = wide(dy)
    total = gnp.sum(dz, axis=axis, keepdims=True)
    return like(dz - gnp.exp(wide(y)) * total, dy)


@custom_gradient
def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """log(sum(exp(x))) along axes without overflow.

    The gradient is softmax(x); 0 where every x is minus infinity.
    """
    off, top = off_greatest(wide(x), axis)
    e = gnp.exp(off)
    total = gnp.sum(e, axis=axis, keepdims=True)
    share = e / _one_for_zero(total)
    y = gnp.where(total == 0, -gnp.inf, gnp.log(_one_for_zero(total))) + top

    def grad(dy: Any) -> Any:
        if not keepdims:
            dy = gnp.reshape(dy, gnp.shape(total))
        return like(wide(dy) * share, x)

    return like(y if keepdims else without(y, axis), x), grad


def off_greatest(x: Any, axis: Any) -> tuple[Any, Any]:
    """x less the greatest, and that: a constant, 0 where it is infinite."""
    top = gnp.stop_gradient(gnp.max(x, axis=axis, keepdims=True))
    top = gnp.where(gnp.isfinite(top), top, gnp.zeros_like(top))
    return x - top, top


def _one_for_zero(total: Any) -> Any:
    return gnp.where(total == 0, gnp.ones_like(total), total)


def without(y: Any, axis: Any) -> Any:
    """y without the axes of length 1 that a reduction left."""
    return gnp.squeeze(y, tuple(range(gnp.ndim(y))) if axis is None else axis)


@operation
def log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) of x > 0, precise at both ends; the slope at 0 counts as 0."""
    z = wide(x)
    near = z < log(2)
    small = gnp.where(near, z, gnp.ones_like(z))
    large = gnp.where(near, gnp.ones_like(z), z)
    pole = small <= 0
    y = gnp.log(-gnp.expm1(-gnp.where(pole, gnp.ones_like(z), small)))
    y = gnp.where(pole, gnp.where(small < 0, gnp.nan, -gnp.inf), y)
    return like(gnp.where(near, y, gnp.log1p(-gnp.exp(-large))), x)


@log1mexp.vjp
def _(dy: Any, y: Any, x: Any) -> Any:
    # exp(-x) / (1 - exp(-x)), in which nothing overflows
    z = wide(x)
    z = gnp.where(z > 0, z, gnp.inf)
    return dy * like(gnp.exp(-z) / -gnp.expm1(-z), x)


@operation
def xlogy(x: Any, y: Any) -> Any:
    """x log(y), which is 0 where x is, also at y = 0; infinite slopes count as 0."""
    return like(_xlogy(wide(x), wide(y)), x)


def _xlogy(x: Any, y: Any) -> Any:
    return gnp.where(x == 0, 0.0, x * _log(y, at_zero=-gnp.inf))


def _log(y: Any, at_zero: float) -> Any:
    zero = y == 0
    return gnp.where(zero, at_zero, gnp.log(gnp.where(zero, gnp.ones_like(y), y)))


@xlogy.vjp
def _(dz: Any, z: Any, x: Any, y: Any) -> Any:
    zero = y == 0
    dx = dz * _log(y, at_zero=0.0)
    dy = dz * gnp.where(zero, 0.0, x / gnp.where(zero, gnp.ones_like(y), y))
    return gnp.unbroadcast(dx, gnp.shape(x)), gnp.unbroadcast(dy, gnp.shape(y))
