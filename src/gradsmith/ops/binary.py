"""Losses of yes and no: binary cross entropy and focal loss."""

from __future__ import annotations

from math import prod
from typing import Any

from .. import numpy as gnp
from ..operations.define import operation
from ..operations.fusing import made_again
from ._inputs import (
    as_target,
    is_number,
    known_values,
    number,
    operands,
    prediction,
    require_share,
    times,
    wrong,
)
from ._reductions import chosen, reduced, require_reduction, summed, total_of
from .logistic import both, bump, log1p_of_share, log_sigmoid, softplus


def binary_cross_entropy_with_logits(
    logits: Any, target: Any, *, pos_weight: float = 1.0, reduction: str = "mean"
) -> Any:
    """-target log(sigmoid(logits)) - (1 - target) log(1 - sigmoid(logits)).

    `pos_weight` is the weight of the first term.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x, t = np.array([1000.0, -2.0]), np.array([1.0, 0.0])
    >>> float(gs.ops.binary_cross_entropy_with_logits(x, t).round(4))
    0.0635
    >>> gs.grad(gs.ops.binary_cross_entropy_with_logits)(x, t).round(4)
    array([0.    , 0.0596])

    Raises
    ------
    GradsmithError
        If the reduction is not "mean", "sum" or "none", or the target does not fit,
        or pos_weight is below 0.
    """
    pos_weight = number(pos_weight)
    y = made_again(_binary_total, logits, target, pos_weight, reduction)
    if y is not NotImplemented:  # 5 us less
        return y
    op = "binary_cross_entropy_with_logits"
    require_reduction(op, reduction)
    if not is_number(pos_weight) or pos_weight < 0:
        got, do = repr(pos_weight), "give 1 for none"
        raise wrong(op, "pos_weight", "a number from 0 on", got, do)
    args = *operands(op, logits, target, "logits"), float(pos_weight)
    return summed(_binary, _binary_total, args, reduction, logits)


@operation
def _binary(x: Any, t: Any, weight: float) -> Any:
    # weight t softplus(-x) + (1 - t) softplus(x): no term is negative, nothing cancels.
    missed, met = _sides(x, t, weight)
    line = times(missed, gnp.abs(x))
    rest = log1p_of_share(gnp.exp(-gnp.abs(x)))
    return chosen(line + (rest if weight == 1 else (missed + met) * rest))


@_binary.vjp
def _(dy: Any, y: Any, x: Any, t: Any, weight: float, *, needs: dict[str, bool]) -> Any:
    dx = dy * _binary_slope(x, t, weight)
    if not needs["t"]:
        return dx, None
    # weight softplus(-x) - softplus(x), in which the lines are not subtracted
    dt = gnp.where(x < 0, -weight * x, -x)
    if weight != 1:
        dt = dt + (weight - 1) * softplus(-gnp.abs(x))
    dt = dy * dt
    return dx, gnp.unbroadcast(dt, gnp.shape(t))


_binary_total = total_of(_binary)


@operation
def _binary_slope(x: Any, t: Any, weight: float) -> Any:
    """(1 - t) sigmoid(x) - weight t sigmoid(-x)."""
    missed, met = _sides(x, t, weight)
    e = gnp.exp(-gnp.abs(x))
    size = (missed - met * e) / (1 + e)
    return gnp.where(x < 0, -size, size)


@_binary_slope.vjp
def _(dy: Any, y: Any, x: Any, t: Any, weight: float, *, needs: dict[str, bool]) -> Any:
    dx = dy * (1 - t + weight * t) * bump(x)
    if not needs["t"]:
        return dx, None
    p, rest = both(x)
    return dx, gnp.unbroadcast(-dy * (p + weight * rest), gnp.shape(t))


def _sides(x: Any, t: Any, weight: float) -> tuple[Any, Any]:
    """How much of the target is on the other side of 0 than x, and how much is not."""
    yes, no = weight * t, 1 - t
    below = x < 0
    return gnp.where(below, yes, no), gnp.where(below, no, yes)


def focal(
    logits: Any,
    target: Any,
    *,
    gamma: float = 2.0,
    alpha: float | None = None,
    reduction: str = "mean",
) -> Any:
    """Binary cross entropy times (1 - p)**gamma; p is the probability of the target.

    Targets are 0 or 1; `alpha` is the weight of those that are 1, and 1 - alpha that of
    the others.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> x, t = np.array([1000.0, -2.0]), np.array([1.0, 0.0])
    >>> float(gs.ops.focal(x, t).round(4))
    0.0009
    >>> gs.grad(gs.ops.focal)(x, t).round(4)
    array([0.    , 0.0024])

    Raises
    ------
    GradsmithError
        If the reduction is not "mean", "sum" or "none", or the target does not fit,
        gamma is below 0, or alpha is not between 0 and 1.
    """
    op = "focal"
    gamma, alpha = number(gamma), number(alpha)
    require_reduction(op, reduction)
    if not is_number(gamma) or gamma < 0:
        raise wrong(op, "gamma", "a number from 0 on", repr(gamma), "give 2")
    if alpha is not None:
        require_share(op, alpha=alpha)
    x = prediction(op, logits, "logits")
    t = gnp.stop_gradient(as_target(op, target, x))
    values = known_values(t)
    if values is not None and ((values != 0) & (values != 1)).any():
        do = "round the target, or take binary_cross_entropy_with_logits"
        raise wrong(op, "target", "zeros and ones", "others among them", do)
    parts = _focal(x * (2 * t - 1), float(gamma))
    if alpha is not None:
        parts = parts * (t * alpha + (1 - t) * (1 - alpha))
    return reduced(parts, reduction, logits)


@operation
def _focal(z: Any, gamma: float) -> Any:
    """-sigmoid(-z)^gamma log(sigmoid(z))."""
    return -_power(z, both(z)[1], gamma) * log_sigmoid(z)


@_focal.vjp
def _(dy: Any, y: Any, z: Any, gamma: float) -> Any:
    p, rest = both(z)
    return dy * _power(z, rest, gamma) * (gamma * times(p, log_sigmoid(z)) - rest)


def _power(z: Any, rest: Any, gamma: float) -> Any:
    """sigmoid(-z)^gamma: a product, or by its logarithm, where no slope is infinite."""
    if gamma in (1, 2, 3, 4):
        return prod([rest] * int(gamma))
    return gnp.exp(-gamma * softplus(z))
