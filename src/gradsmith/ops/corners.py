"""Functions with a corner or a pole, whose gradient there is declared: 0."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import FunctionType
from typing import Any

import numpy as np

from .. import numpy as gnp
from ..core.arrays import framework_of
from ..core.transforms import vjp
from ..numpy._dispatch import NUMPY
from ..operations.define import custom_gradient, operation
from ..program.kernels.mode import in_cpu_kernel
from ._arguments import takes
from ._inputs import (
    fitted,
    if_any,
    is_number,
    kind,
    leaves_out_unused,
    like,
    number,
    operand,
    pair,
    wide,
)
from .exponentials import not_zero, without


@takes("x")
@operation
def sqrt(x: Any) -> Any:
    """The square root, whose slope at 0 counts as 0.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> gs.grad(lambda x: np.sum(gs.ops.sqrt(x)))(np.array([0.0, 4.0]))
    array([0.  , 0.25])
    """
    return gnp.sqrt(x)


@sqrt.vjp
def _(dy: Any, y: Any, x: Any) -> Any:
    return dy * _sqrt_slope(y)


@operation
def _sqrt_slope(y: Any) -> Any:
    """1 / (2 y), and 0 at 0."""
    return gnp.where(y == 0, 0.0, 0.5 / y)


@_sqrt_slope.vjp
def _(ds: Any, s: Any, y: Any) -> Any:
    return -2 * ds * s * s


@takes("x1", "x2")
@operation
def divide(x1: Any, x2: Any, fill: float = 0.0) -> Any:
    """x1 / x2; `fill`, and no gradient, where x2 is 0.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([0.0, 2.0])
    >>> gs.ops.divide(1.0, x)
    array([0. , 0.5])
    >>> gs.grad(lambda x: np.sum(gs.ops.divide(1.0, x)))(x)
    array([ 0.  , -0.25])
    """
    x1, x2 = pair(x1, x2)
    zero, x2 = not_zero(x2)
    return gnp.where(zero, fill, x1 / x2)


@divide.vjp
def _(dy: Any, y: Any, x1: Any, x2: Any, fill: float) -> Any:
    # No square of x2, which would leave the floating range first
    zero, divisor = not_zero(pair(x1, x2)[1])
    dx1 = gnp.where(zero, 0.0, dy / divisor)
    dx2 = gnp.where(zero, 0.0, -dy * y / divisor)
    return {"x1": fitted(dx1, x1), "x2": fitted(dx2, x2)}


@takes("x")
@custom_gradient
def norm(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """The Euclidean norm, whose squares never overflow; its gradient at 0 is 0.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> print(f"{gs.ops.norm(np.array([3e200, 4e200])):.3g}")
    5e+200
    >>> gs.grad(gs.ops.norm)(np.zeros(2))
    array([0., 0.])
    """
    size, scale = length(wide(x), axis)
    y = size * (1 / scale)

    def grad(dy: Any) -> Any:
        if not keepdims:
            dy = gnp.reshape(dy, gnp.shape(size))
        along, of = direction(wide(x) * scale, size, axis)
        return like(divide(wide(dy), of) * along, x)

    return like(y if keepdims else without(y, axis), x), grad


def direction(x: Any, size: Any, axis: Any) -> tuple[Any, Any]:
    """x and its norm; of an infinite one, the limit of their quotient.

    An infinite element takes all; of several of them none does, so that it is NaN.
    """
    infinite = size == gnp.inf

    def at_limit() -> tuple[Any, Any]:
        lead = gnp.where(gnp.abs(x) == gnp.inf, gnp.sign(x), gnp.zeros_like(x))
        leads = _in_rows(infinite, lead * lead)
        several = gnp.sum(leads, axis=axis, keepdims=True) > 1
        one = gnp.where(several, gnp.nan, gnp.ones_like(size))
        return gnp.where(infinite, lead, x), gnp.where(infinite, one, size)

    return if_any(infinite, at_limit, lambda: (x, size))


def length(x: Any, axis: Any) -> tuple[Any, Any]:
    """The norm of x times a power of two, and that: 1 if x is no extreme."""
    plain = _squares(x, 1.0, axis)
    one = gnp.ones_like(gnp.stop_gradient(plain))
    if kind(x) is None:  # certified balls have no largest number
        return sqrt(plain), one
    least, down, up = _RANGES[str(kind(x))]
    low, high = plain < least, ~gnp.isfinite(plain)

    def scaled() -> tuple[Any, Any]:
        less, more = (_squares(x, by, axis, low | high) for by in (down, up))
        total = gnp.where(low, more, gnp.where(high, less, plain))
        return sqrt(total), gnp.where(low, up * one, gnp.where(high, down * one, one))

    # Made in any case, the two other sums take 0.8 of the time of norm and gradient
    return if_any(low | high, scaled, lambda: (sqrt(plain), one))


def _squares(x: Any, scale: float, axis: Any, rows: Any = None) -> Any:
    """The sum of the squares of x times `scale`, which may overflow."""
    with np.errstate(over="ignore") if framework_of(x) == NUMPY else nullcontext():
        x = x if scale == 1 else x * scale
        squares = x * x if rows is None else _in_rows(rows, x * x)
        return gnp.sum(squares, axis=axis, keepdims=True)


def _in_rows(rows: Any, x: Any) -> Any:
    """x, which matters in some rows: a kernel then leaves its sum out in the others."""
    return gnp.where(rows, x, gnp.zeros_like(x)) if in_cpu_kernel() else x


# What a sum of squares is at least, if none that counts has vanished, and the powers of
# two by which larger and smaller numbers are multiplied
_RANGES = {
    "float32": (2.0**-80, 2.0**-80, 2.0**100),
    "float64": (2.0**-900, 2.0**-600, 2.0**700),
}


def safe_where(
    cond: Any, fn: Callable[[Any], Any], x: Any, fill: Any = 0.0, *, at: float = 0.5
) -> Any:
    """fn(x) where cond holds and `fill` elsewhere, without NaN from masked elements.

    fn is elementwise. It gets `at`, a number in its domain, in place of the masked
    elements, so neither its value nor its slope there has an effect.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([0.0, 1.0])
    >>> gs.grad(lambda x: np.sum(gs.ops.safe_where(x > 0, np.log, x)))(x)
    array([0., 1.])
    """
    x = operand("safe_where", "x", x, takes_complex=True)
    if isinstance(cond, (list, tuple)):
        cond = gnp.asarray(cond, like=x)
    fill, at = number(fill), number(at)
    if framework_of(x) == NUMPY and is_number(fill) and _is_pure(fn):
        return _where(x, cond, fn, fill, at)
    masked = gnp.where(cond, x, at)
    y = fn(masked)
    if leaves_out_unused(x) and _is_pure(fn) and _are_alike(masked, x):
        y = _with_value(y, fn(gnp.stop_gradient(x)))
    return gnp.where(cond, y, fill)


def _are_alike(x1: Any, x2: Any) -> bool:
    return x1.dtype == x2.dtype and x1.shape == x2.shape


@operation
def _with_value(y: Any, value: Any) -> Any:
    """A value that is differentiated as y.

    A compiler leaves the value of y out then, and with it the choice in front of a
    long function: with log the loop takes 35 us instead of 48.
    """
    return value


@_with_value.vjp
def _(dy: Any, _: Any, y: Any, value: Any) -> Any:
    return dy, None


def _is_pure(fn: Any) -> bool:
    """Whether it is a function of NumPy's names, which captures nothing."""
    if not isinstance(fn, FunctionType):  # Dynamo knows no __module__ of others
        return isinstance(fn, np.ufunc)
    return (fn.__module__ or "").startswith(gnp.__name__)


@operation
def _where(x: Any, cond: Any, fn: Any, fill: Any, at: float) -> Any:
    """`safe_where` as an operation, for a kernel: 0.02 of the time of np.where's."""
    return gnp.where(cond, fn(gnp.where(cond, x, at)), fill)


@_where.vjp
def _(dy: Any, y: Any, x: Any, cond: Any, fn: Any, fill: Any, at: float) -> Any:
    _, pull = vjp(fn, gnp.where(cond, x, at))
    return {"x": fitted(gnp.where(cond, pull(dy)[0], 0.0), x)}
