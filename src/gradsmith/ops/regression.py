"""Losses of numbers: huber, poisson_nll, gaussian_nll."""

from __future__ import annotations

from math import log, pi
from typing import Any

from .. import numpy as gnp
from ..frameworks._dtypes import is_inexact
from ..operations.define import operation
from ..operations.fusing import made_again
from ._inputs import (
    as_target,
    is_number,
    is_unwatched,
    kind,
    number,
    operands,
    prediction,
    require_positive,
    times,
)
from ._reductions import chosen, reduced, require_reduction, summed, total_of


def huber(x: Any, target: Any, *, delta: float = 1.0, reduction: str = "mean") -> Any:
    """Half the square of x - target, continued as a line beyond `delta`.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x, t = np.array([0.5, 100.0]), np.zeros(2)
    >>> float(gs.ops.huber(x, t).round(4))
    49.8125
    >>> gs.grad(gs.ops.huber)(x, t).round(4)
    array([0.25, 0.5 ])

    Raises
    ------
    GradsmithError
        If the reduction is not "mean", "sum" or "none", or the target does not fit,
        or delta is not above 0.
    """
    delta = number(delta)
    y = made_again(_huber_total, x, target, delta, reduction)
    if y is not NotImplemented:  # 5 us less
        return y
    require_reduction("huber", reduction)
    require_positive("huber", delta=delta)
    args = *operands("huber", x, target), delta
    return summed(_huber, _huber_total, args, reduction, x)


@operation
def _huber(x: Any, t: Any, delta: float) -> Any:
    # With d = x - t it is d^2 / 2 up to delta and delta (|d| - delta / 2) beyond. Made
    # of its slope c, Inductor computes it in the loop that saves c.
    d = x - t
    c = gnp.clip(d, -delta, delta)
    return chosen(c * (d - c * 0.5))


@_huber.vjp
def _(dy: Any, y: Any, x: Any, t: Any, delta: float) -> Any:
    dx = dy * gnp.clip(x - t, -delta, delta)
    return dx, gnp.unbroadcast(-dx, gnp.shape(t))


_huber_total = total_of(_huber)


def poisson_nll(log_rate: Any, target: Any, *, reduction: str = "mean") -> Any:
    """exp(log_rate) - target log_rate, the loss of a count without its constant.

    If the rate overflows, the gradient is the largest finite number.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x, t = np.array([0.0, 1.0]), np.array([1.0, 2.0])
    >>> float(gs.ops.poisson_nll(x, t).round(4))
    0.8591
    >>> gs.grad(gs.ops.poisson_nll)(x, t).round(4)
    array([0.    , 0.3591])

    Raises
    ------
    GradsmithError
        If the reduction is not "mean", "sum" or "none", or the target does not fit.
    """
    require_reduction("poisson_nll", reduction)
    z, t = operands("poisson_nll", log_rate, target, "log_rate")
    of = log_rate if is_inexact(str(kind(log_rate))) else z  # not if it is whole
    args = z, t, float(gnp.finfo(of).max)
    return summed(_poisson, _poisson_total, args, reduction, log_rate)


@operation
def _poisson(x: Any, t: Any, greatest: float) -> Any:
    most = _greatest_exponent(x)
    held = gnp.minimum(x, most)
    y = gnp.exp(held) - times(t, held)
    return gnp.where(x > most, y + gnp.inf, y)  # as exp(x) is, which t x is less than


@_poisson.vjp
def _(dy: Any, y: Any, x: Any, t: Any, greatest: float) -> Any:
    most = _greatest_exponent(x)
    rate = gnp.where(x > most, gnp.inf, gnp.exp(gnp.minimum(x, most)))
    return dy * gnp.minimum(rate - t, greatest), gnp.unbroadcast(-dy * x, gnp.shape(t))


_poisson_total = total_of(_poisson)


def _greatest_exponent(x: Any) -> float:
    """The logarithm of the greatest number, less what rounding may add."""
    return log(gnp.finfo(x).max) * (1 - gnp.finfo(x).eps)


def gaussian_nll(
    mean: Any, target: Any, var: Any, *, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
    """(log(var) + (mean - target)**2 / var + log(2 pi)) / 2; var is at least `eps`.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> mean, target, var = np.array([0.0, 1.0]), np.zeros(2), np.ones(2)
    >>> float(gs.ops.gaussian_nll(mean, target, var).round(4))
    1.1689
    >>> gs.grad(gs.ops.gaussian_nll)(mean, target, var)
    array([0. , 0.5])

    Raises
    ------
    GradsmithError
        If the reduction is not "mean", "sum" or "none", or the target does not fit,
        or eps is not above 0.
    """
    op = "gaussian_nll"
    require_reduction(op, reduction)
    eps = number(eps)
    require_positive(op, eps=eps)
    x = prediction(op, mean, "mean")
    t, v = as_target(op, target, x), as_target(op, var, x, "var")
    return reduced(_gaussian(x, t, v, eps), reduction, mean)


@operation
def _gaussian(x: Any, t: Any, v: Any, eps: float) -> Any:
    held, off = gnp.maximum(v, eps), x - t
    if is_number(eps) and is_unwatched(v):  # 0.94 of the time of the loop
        log_v = gnp.where(v < eps, log(eps), gnp.log(v))
    else:
        log_v = gnp.log(held)
    return (log_v + off * (off / held) + log(2 * pi)) / 2


@_gaussian.vjp
def _(dy: Any, y: Any, x: Any, t: Any, v: Any, eps: float) -> Any:
    # No square of x - t, which would leave the floating range first
    held = gnp.maximum(v, eps)
    slope = (x - t) / held
    dx = dy * slope
    dv = dy * gnp.where(v < eps, 0.0, (1 / held - slope * slope) / 2)
    return dx, gnp.unbroadcast(-dx, gnp.shape(t)), gnp.unbroadcast(dv, gnp.shape(v))
