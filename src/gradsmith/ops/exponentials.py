"""Sums of exponentials and logarithms: softmax, logsumexp, log1mexp, xlogy."""

from __future__ import annotations

from math import log
from typing import Any

from .. import numpy as gnp
from ..operations.define import custom_gradient, operation
from ..program.kernels.mode import in_cpu_kernel, in_gpu_kernel, in_kernel
from ..program.kernels.primitives import exp_rest, exp_total, log_sum
from ._arguments import takes
from ._inputs import (
    fitted,
    kind,
    like,
    pair,
    polynomial,
    require_axis,
    shape_of,
    unless_none,
    wide,
)


class Shares:
    """exp(x) along axes over its greatest: e, its total, and the greatest, top.

    A greatest that is infinite takes all; of several of them none does, so that all is
    NaN. Where every x is minus infinity, e is 0, its total counts as 1 and top as 0.
    """

    def __init__(self, x: Any, axis: Any, *, log: bool = True) -> None:
        self.axis, self.x = axis, x
        self.off, self.top = off_greatest(x, axis)
        self.e = gnp.exp(self.off)
        if in_gpu_kernel():
            total = exp_total(x, axis)
        else:
            total = gnp.sum(self.e, axis=axis, keepdims=True)
        self.masked = total == 0
        several = (total > 1) & (self.top == gnp.inf)
        total = gnp.where(several | (self.top != self.top), gnp.nan, total)
        if in_gpu_kernel():  # which then knows that it may divide by it
            self.total = gnp.maximum(total, 1)
        else:
            self.total = gnp.where(self.masked, gnp.ones_like(total), total)
        if log:
            self.close = self.total < 1.5
            self.rest = self._of_others()
            self.log_total = self._log_total()

    @property
    def of_all(self) -> Any:
        return self.e / self.total

    def _of_others(self) -> Any:
        """The total less the greatest's 1, to all digits where it is close to 1."""
        if in_gpu_kernel():
            return exp_rest(self.x, self.axis)

        def of_others() -> Any:
            if in_cpu_kernel():  # which then leaves the sum out in the other rows
                e = gnp.where(self.e < 1, self.e, gnp.zeros_like(self.e))
                e = gnp.where(self.close, e, gnp.zeros_like(e))
            else:
                # XLA takes x - top together with a product that x is, which is not
                # rounded then: the e of the greatest is not quite 1
                e = gnp.where(self.x < self.top, self.e, gnp.zeros_like(self.e))
            return gnp.sum(e, axis=self.axis, keepdims=True)

        return unless_none(self.close, of_others, lambda: self.total - 1)

    def _log_total(self) -> Any:
        """log(total), to all digits where it is close to 0."""
        y = gnp.log(self.total)
        lost = gnp.stop_gradient(gnp.log1p(self.rest) - y)
        return y + gnp.where(self.close, lost, gnp.zeros_like(lost))

    @property
    def logsumexp(self) -> Any:
        return gnp.where(self.top == gnp.inf, self.top, self.log_total + self.top)


def off_greatest(x: Any, axis: Any) -> tuple[Any, Any]:
    """x less the greatest, and that: a constant, 0 where it is minus infinity."""
    if 0 in shape_of(x):
        return x, gnp.stop_gradient(gnp.sum(x, axis=axis, keepdims=True))
    top = gnp.stop_gradient(gnp.max(x, axis=axis, keepdims=True))
    top = gnp.where(top == -gnp.inf, gnp.zeros_like(top), top)
    if in_gpu_kernel():
        return gnp.where(x == top, gnp.zeros_like(x), x - top), top
    infinite = top == gnp.inf
    off = x - gnp.where(infinite, gnp.zeros_like(top), top)

    def at_limit() -> Any:
        others = gnp.where(off == off, -gnp.inf, off)
        limit = gnp.where(x == top, gnp.zeros_like(off), others)
        return gnp.where(infinite, limit, off)

    return unless_none(infinite, at_limit, lambda: off), top


@takes("x")
@operation
def softmax(x: Any, axis: int = -1) -> Any:
    """exp(x) / sum(exp(x)) without overflow; all 0 if every x is minus infinity.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([1000.0, 0.0, 1000.0])
    >>> gs.ops.softmax(x)
    array([0.5, 0. , 0.5])
    >>> gs.grad(lambda x: gs.ops.softmax(x)[0])(x)
    array([ 0.25,  0.  , -0.25])

    Raises
    ------
    GradsmithError
        If x has no such axis.
    """
    require_axis("softmax", x, axis)
    return like(Shares(wide(x), axis, log=False).of_all, x)


@softmax.vjp
def _(dy: Any, y: Any, x: Any, axis: int) -> Any:
    return like(through_shares(wide(dy), wide(y), axis), dy)


@operation
def through_shares(dy: Any, y: Any, axis: int) -> Any:
    """y (dy - sum(dy y)), the gradient through y = softmax(x)."""
    p = dy * y
    total = gnp.sum(p, axis=axis, keepdims=True)
    if in_kernel():
        return y * (dy - total)
    # Of dy - sum(dy y) XLA makes wrong numbers on CPUs where all rows have the same dy
    # (jaxlib 0.10.2, github.com/jax-ml/jax/issues/39103)
    return p - y * total


@through_shares.vjp
def _(c: Any, dx: Any, dy: Any, y: Any, axis: int) -> Any:
    total = gnp.sum(dy * y, axis=axis, keepdims=True)
    other = gnp.sum(c * y, axis=axis, keepdims=True)
    return {"dy": through_shares(c, y, axis), "y": c * dy - (c * total + dy * other)}


@takes("x")
@custom_gradient
def log_softmax(x: Any, axis: int = -1) -> Any:
    """log(softmax(x)) without underflow.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([1000.0, 0.0, 1000.0])
    >>> gs.ops.log_softmax(x).round(3)
    array([-6.930000e-01, -1.000693e+03, -6.930000e-01])
    >>> gs.grad(lambda x: gs.ops.log_softmax(x)[0])(x)
    array([ 0.5,  0. , -0.5])

    Raises
    ------
    GradsmithError
        If x has no such axis.
    """
    require_axis("log_softmax", x, axis)
    s = Shares(wide(x), axis)

    def grad(dy: Any) -> Any:
        dz = wide(dy)
        return like(dz - s.e * (gnp.sum(dz, axis=axis, keepdims=True) / s.total), x)

    return like(s.off - s.log_total, x), grad


@takes("x")
@custom_gradient
def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    """log(sum(exp(x))) along axes without overflow.

    The gradient is softmax(x), or 0 if every x is minus infinity.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([1000.0, 0.0, 1000.0])
    >>> float(gs.ops.logsumexp(x).round(3))
    1000.693
    >>> gs.grad(gs.ops.logsumexp)(x)
    array([0.5, 0. , 0.5])
    """
    s = Shares(wide(x), axis)
    y = gnp.where(s.masked, -gnp.inf, s.logsumexp)

    def grad(dy: Any) -> Any:
        if not keepdims:
            dy = gnp.reshape(dy, gnp.shape(s.total))
        return like(s.e * (wide(dy) / s.total), x)  # one product for each element

    return like(y if keepdims else without(y, axis), x), grad


def not_zero(y: Any) -> tuple[Any, Any]:
    """Where y is 0, and y with 1 in its place."""
    zero = y == 0
    return zero, gnp.where(zero, gnp.ones_like(y), y)


def without(y: Any, axis: Any) -> Any:
    """y without the axes of length 1 that a reduction left."""
    return gnp.squeeze(y, tuple(range(gnp.ndim(y))) if axis is None else axis)


@takes("x")
@operation
def log1mexp(x: Any) -> Any:
    """log(1 - exp(-x)) for x > 0, accurate at both ends; the slope at 0 counts as 0.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x = np.array([1e-20, 1.0, 1000.0])
    >>> gs.ops.log1mexp(x).round(3)
    array([-46.052,  -0.459,  -0.   ])
    >>> gs.grad(lambda x: np.sum(gs.ops.log1mexp(x)))(x).round(3)
    array([1.00e+20, 5.82e-01, 0.00e+00])
    """
    z = wide(x)
    e = gnp.exp(-z)
    u = _one_less(e, z)
    if in_cpu_kernel():  # whose log is right at 0 and below, and knows what u lost
        lost = gnp.where(z < log(2), 0.0, (1 - u) - e)
        return like(log_sum(u, lost), x)
    if in_kernel():  # whose log is -inf at 0 and NaN below, without a warning
        return like(gnp.where(e < 0.25, _log1p(e), gnp.log(u)), x)
    pole = u <= 0
    y = gnp.log(gnp.where(pole, gnp.ones_like(z), u))
    y = gnp.where(pole, -gnp.inf, gnp.where(e < 0.25, _log1p(e), y))
    return like(gnp.where(z < 0, gnp.nan, y), x)


@log1mexp.vjp
def _(dy: Any, y: Any, x: Any) -> Any:
    # exp(-x) / (1 - exp(-x)), in which nothing overflows
    z = wide(x)
    e = gnp.exp(-z)
    _, u = not_zero(_one_less(e, z))
    return dy * like(gnp.where(z <= 0, 0.0, e / u), x)


# In float32 both are polynomials where 1 - e loses digits, which compiled code computes
# in a fifth of the time of the frameworks' expm1 and log1p, and to more digits.


def _one_less(e: Any, z: Any) -> Any:
    """1 - exp(-z), for e = exp(-z)."""
    if kind(z) != "float32":
        return -gnp.expm1(-z)
    return gnp.where(z < log(2), z * polynomial(z, _EXPM1), 1 - e)


def _log1p(e: Any) -> Any:
    """log(1 - e) for e < 1/4."""
    e = gnp.minimum(e, 0.25)
    if kind(e) != "float32":
        return gnp.log1p(-e)
    return -e * polynomial(e, _LOG1P)


# (1 - exp(-z)) / z for 0 < z < log 2 and -log(1 - e) / e for 0 < e < 1/4, off by less
# than 1.1e-8 and 2.5e-9
_EXPM1 = (
    0.9999999916359202, -0.4999991309814372, 0.16665196078072894,
    -0.041575032540623814, 0.008072126316895502, -0.0010358985359332426,
)  # fmt: skip
_LOG1P = (
    1.0000000022040603, 0.49999913833409726, 0.33338781043813015, 0.24872343793535098,
    0.2139960414327055, 0.09043033324072965, 0.3326996728710525,
)  # fmt: skip


@takes("x", "y")
@operation
def xlogy(x: Any, y: Any) -> Any:
    """x log(y), which is 0 where x is, whatever y; infinite slopes count as 0.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> gs.ops.xlogy(np.array([0.0, 1.0]), np.array([0.0, 2.0])).round(3)
    array([0.   , 0.693])
    >>> gs.grad(lambda x: np.sum(gs.ops.xlogy(x, x)))(np.array([0.0, 1.0]))
    array([0., 1.])
    """
    x, y = pair(x, y)
    v, w = wide(x), wide(y)
    if in_kernel():  # nobody is warned of log(0) there
        log_y = gnp.log(w)
    else:
        log_y = gnp.where(w == 0, -gnp.inf, gnp.log(_held(v, w)))
    return like(v * gnp.where((v == 0) & (w == w), 0.0, log_y), x)


@xlogy.vjp
def _(dz: Any, z: Any, x: Any, y: Any) -> Any:
    v, w = pair(x, y)
    if in_kernel():  # which need not wait for what is held
        held, log_y = w, gnp.where(_is_unwanted(v, w), 0.0, gnp.log(w))
    else:
        held = _held(v, w)
        log_y = gnp.log(held)
    dy = gnp.where(w == 0, 0.0, dz * v / held)
    return {"x": fitted(dz * log_y, x), "y": fitted(dy, y)}


def _is_unwanted(x: Any, y: Any) -> Any:
    """Where the logarithm of y is: at 0, and below where x is 0."""
    return (y == 0) | ((x == 0) & (y < 0))


def _held(x: Any, y: Any) -> Any:
    """y, and 1 where its logarithm is unwanted."""
    return gnp.where(_is_unwanted(x, y), gnp.ones_like(y), y)
