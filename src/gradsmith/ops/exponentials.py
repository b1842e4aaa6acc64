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


@custom_gradient
def log_softmax(x: Any, axis: int = -1) -> Any:
    """log(softmax(x)) without underflow."""
    require_axis("log_softmax", x, axis)
    off, _ = off_greatest(wide(x), axis)
    e = gnp.exp(off)
    total = _one_for_zero(gnp.sum(e, axis=axis, keepdims=True))

    def grad(dy: Any) -> Any:
        dz = wide(dy)
        return like(dz - e * (gnp.sum(dz, axis=axis, keepdims=True) / total), x)

    return like(off - gnp.log(total), x), grad


@custom_gradient
def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """log(sum(exp(x))) along axes without overflow.

    The gradient is softmax(x); 0 where every x is minus infinity.
    """
    off, top = off_greatest(wide(x), axis)
    e = gnp.exp(off)
    total = gnp.sum(e, axis=axis, keepdims=True)
    y = gnp.where(total == 0, -gnp.inf, gnp.log(_one_for_zero(total))) + top

    def grad(dy: Any) -> Any:
        if not keepdims:
            dy = gnp.reshape(dy, gnp.shape(total))
        return like(wide(dy) / _one_for_zero(total) * e, x)

    return like(y if keepdims else without(y, axis), x), grad


def off_greatest(x: Any, axis: Any) -> tuple[Any, Any]:
    """x less the greatest, and that: a constant, 0 where it is infinite."""
    top = gnp.stop_gradient(gnp.max(x, axis=axis, keepdims=True))
    top = gnp.where(gnp.isfinite(top), top, gnp.zeros_like(top))
    return x - top, top


def _one_for_zero(total: Any) -> Any:
    return gnp.where(total == 0, gnp.ones_like(total), total)


def not_zero(y: Any) -> tuple[Any, Any]:
    """Where y is 0, and y with 1 in its place."""
    zero = y == 0
    return zero, gnp.where(zero, gnp.ones_like(y), y)


def without(y: Any, axis: Any) -> Any:
    """y without the axes of length 1 that a reduction left."""
    return gnp.squeeze(y, tuple(range(gnp.ndim(y))) if axis is None else axis)


@operation
def log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) of x > 0, precise at both ends; the slope at 0 counts as 0."""
    z = wide(x)
    e = gnp.exp(-z)
    u = _one_less(e, z)
    pole = u <= 0
    y = gnp.log(gnp.where(pole, gnp.ones_like(z), u))
    # Of a small e, log(1 - e) is log(u) e / (1 - u) with u = 1 - e as it is rounded.
    none, lost = not_zero(1 - (1 - e))
    y = gnp.where(z < log(2), y, gnp.where(none, -e, y * (e / lost)))
    return like(gnp.where(pole, gnp.where(z < 0, gnp.nan, -gnp.inf), y), x)


@log1mexp.vjp
def _(dy: Any, y: Any, x: Any) -> Any:
    # exp(-x) / (1 - exp(-x)), in which nothing overflows
    z = wide(x)
    e = gnp.exp(-z)
    _, u = not_zero(_one_less(e, z))
    return dy * like(gnp.where(z > 0, e / u, 0.0), x)


def _one_less(e: Any, z: Any) -> Any:
    """1 - exp(-z) to all digits, which near 0 is tanh(z / 2) (1 + exp(-z))."""
    return gnp.where(z < log(2), gnp.tanh(z / 2) * (1 + e), 1 - e)


@operation
def xlogy(x: Any, y: Any) -> Any:
    """x log(y), which is 0 where x is, also at y = 0; infinite slopes count as 0."""
    v, w = wide(x), wide(y)
    zero, held = not_zero(w)
    pole = gnp.where(v > 0, -gnp.inf, gnp.where(v < 0, gnp.inf, gnp.zeros_like(v)))
    return like(gnp.where(zero, pole, v * gnp.log(held)), x)


@xlogy.vjp
def _(dz: Any, z: Any, x: Any, y: Any) -> Any:
    zero, held = not_zero(y)
    dx = dz * gnp.log(held)
    dy = gnp.where(zero, 0.0, dz * x / held)
    return gnp.unbroadcast(dx, gnp.shape(x)), gnp.unbroadcast(dy, gnp.shape(y))
