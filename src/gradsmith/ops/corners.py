"""Functions with a corner or a pole, whose gradient there is declared: 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import numpy as gnp
from .._define import operation
from ._inputs import like, wide
from .exponentials import not_zero, without


@operation
def sqrt(x: Any) -> Any:
    """The square root, whose slope at 0 counts as 0."""
    return gnp.sqrt(x)


@sqrt.vjp
def _(dy: Any, y: Any, x: Any) -> Any:
    rising = y > 0
    return gnp.where(rising, dy / (2 * gnp.where(rising, y, gnp.ones_like(y))), 0.0)


@operation
def divide(x1: Any, x2: Any, fill: float = 0.0) -> Any:
    """x1 / x2; `fill`, and no gradient, where x2 is 0."""
    zero, x2 = not_zero(x2)
    return gnp.where(zero, fill, x1 / x2)


@divide.vjp
def _(dy: Any, y: Any, x1: Any, x2: Any, fill: float) -> Any:
    # No square of x2, which would leave the floating range first
    zero, divisor = not_zero(x2)
    dx1 = gnp.where(zero, 0.0, dy / divisor)
    dx2 = gnp.where(zero, 0.0, -dy * y / divisor)
    shapes = gnp.shape(x1), gnp.shape(x2)
    return gnp.unbroadcast(dx1, shapes[0]), gnp.unbroadcast(dx2, shapes[1])


@operation
def norm(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The Euclidean norm, whose squares never overflow; its gradient at 0 is 0."""
    parts, top = scaled(wide(x), axis)
    y = top * gnp.sqrt(gnp.sum(parts * parts, axis=axis, keepdims=True))
    return like(y if keepdims else without(y, axis), x)


@norm.vjp
def _(dy: Any, y: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    parts, top = scaled(wide(x), axis)
    size = sqrt(gnp.sum(parts * parts, axis=axis, keepdims=True))
    if not keepdims:
        dy = gnp.reshape(dy, gnp.shape(top))
    return like(divide(wide(dy), size) * parts, x)


def scaled(x: Any, axis: Any) -> tuple[Any, Any]:
    """x over the greatest size in it, and that, a constant.

    A very small one counts as more, so that its reciprocal is finite; the squares of
    what is then left of x don't vanish yet.
    """
    top = gnp.max(gnp.abs(gnp.stop_gradient(x)), axis=axis, keepdims=True)
    top = gnp.maximum(top, 2.0**-100)
    top = gnp.where(gnp.isfinite(top), top, gnp.ones_like(top))
    return x * (1 / top), top


def safe_where(
    cond: Any, fn: Callable[[Any], Any], x: Any, fill: Any = 0.0, *, at: float = 0.5
) -> Any:
    """fn(x) where cond holds and `fill` elsewhere, with no NaN from elsewhere.

    fn is elementwise. It is given `at` in the place of the masked elements, a number
    that it takes; so neither its value nor its slope there goes anywhere.
    """
    y = fn(gnp.where(cond, x, at))
    return gnp.where(cond, y, fill)
