"""Losses of classes: cross entropy, binary cross entropy, divergence, focal loss."""

from __future__ import annotations

from math import prod
from typing import Any

from .. import numpy as gnp
from .._arrays import framework_of
from .._define import custom_gradient, operation
from . import _rows
from ._inputs import (
    as_target,
    is_number,
    kind,
    known_values,
    require_axis,
    require_share,
    wide,
    wrong,
)
from ._reductions import reduced, require_reduction
from .logistic import both, log_sigmoid, softplus


def cross_entropy(
    logits: Any,
    labels: Any,
    *,
    axis: int = -1,
    label_smoothing: float = 0.0,
    ignore_index: int = -100,
    z_loss: float = 0.0,
    reduction: str = "mean",
) -> Any:
    """-log(softmax(logits)) of the labels.

    Labels are whole numbers, in the shape of the logits without `axis`, of which
    `ignore_index` has no loss and doesn't count in the mean; or shares in the shape of
    the logits. `z_loss` adds z_loss * logsumexp(logits)**2, which keeps logits small.
    """
    op = "cross_entropy"
    require_reduction(op, reduction)
    require_share(op, label_smoothing=label_smoothing)
    if not is_number(z_loss) or z_loss < 0:
        raise wrong(op, "z_loss", "a number from 0 on", repr(z_loss), "give 0 for none")
    axis = require_axis(op, logits, axis)
    x = wide(logits)
    if _is_whole(op, labels):
        labels = _classes(op, x, labels, axis, ignore_index)
        rows = _rows.of_classes(x, labels, axis, label_smoothing, ignore_index, z_loss)
        kept = gnp.count_nonzero(gnp.not_equal(labels, ignore_index))
        n = gnp.astype(gnp.maximum(kept, 1), x.dtype)
        return reduced(rows, reduction, logits, n)
    q = _same_shape(op, labels, x)
    rows = _rows.of_shares(x, q, axis, label_smoothing, z_loss)
    return reduced(rows, reduction, logits)


def _is_whole(op: str, labels: Any) -> bool:
    name = kind(labels)
    if name is None or name == "bool" or name.startswith("complex"):
        got = type(labels).__name__ if name is None else name
        expected = "an array of whole numbers (classes) or of floats (shares)"
        raise wrong(op, "labels", expected, got, "convert them first")
    return "int" in name


def _classes(op: str, x: Any, labels: Any, axis: int, ignored: int) -> Any:
    """Labels whose shape and, where it can be seen, whose range is right."""
    n, shape = x.shape[axis], tuple(x.shape)
    expected = (*shape[:axis], *shape[axis + 1 :])
    if not _fits(tuple(labels.shape), expected):
        raise wrong(
            op,
            "labels",
            f"shape {expected}, that of the logits without axis {axis}",
            f"shape {tuple(labels.shape)}",
            "give one label for each row of logits (or shares, as floats)",
        )
    values = known_values(labels)
    if values is not None and n is not None:
        bad = values[(values != ignored) & ((values < 0) | (values >= n))]
        if bad.size:
            expected = f"classes from 0 to {n - 1}, or {ignored} to ignore"
            do = "correct the labels, or give ignore_index="
            raise wrong(op, "labels", expected, f"the class {bad[0]}", do)
    return gnp.astype(labels, "int32") if "uint" in str(kind(labels)) else labels


def _fits(shape: tuple[Any, ...], expected: tuple[Any, ...]) -> bool:
    pairs = zip(shape, expected, strict=False)
    same = all(n == m or n is None or m is None for n, m in pairs)
    return same and len(shape) == len(expected)


def _same_shape(op: str, labels: Any, x: Any) -> Any:
    if not _fits(tuple(labels.shape), tuple(x.shape)):
        raise wrong(
            op,
            "labels",
            f"shares in the shape of the logits, {tuple(x.shape)}",
            f"shape {tuple(labels.shape)}",
            "give a share for each class (or classes, as whole numbers)",
        )
    return labels if kind(labels) == kind(x) else gnp.astype(labels, x.dtype)


def kl_divergence(
    logits: Any, labels: Any, *, axis: int = -1, reduction: str = "mean"
) -> Any:
    """sum(q log(q / softmax(logits))) of the shares q; terms without a share are 0."""
    op = "kl_divergence"
    require_reduction(op, reduction)
    axis = require_axis(op, logits, axis)
    x = wide(logits)
    if framework_of(labels) is None or "float" not in str(kind(labels)):
        got = str(kind(labels) or type(labels).__name__)
        raise wrong(op, "labels", "an array of floats (shares)", got, "convert them")
    q = _same_shape(op, labels, x)
    return reduced(_divergence(x, q, axis), reduction, logits)


@custom_gradient
def _divergence(x: Any, q: Any, axis: int) -> Any:
    rows = _rows.Rows(x, axis)
    none = q == 0
    log_q = gnp.log(gnp.where(none, gnp.ones_like(q), q))
    off = gnp.where(none, 0.0, log_q - (rows.off - rows.log_total))
    mass = gnp.sum(q, axis=axis, keepdims=True)

    def grad(dy: Any) -> Any:
        dy = gnp.expand_dims(dy, axis)
        dq = gnp.where(none, 0.0, off + 1)  # its slope at 0 is infinite
        return (rows.shares * mass - q) * dy, dq * dy

    return gnp.sum(q * off, axis=axis), grad


def binary_cross_entropy_with_logits(
    logits: Any, target: Any, *, pos_weight: float = 1.0, reduction: str = "mean"
) -> Any:
    """-target log(sigmoid(logits)) - (1 - target) log(1 - sigmoid(logits)).

    `pos_weight` is the weight of the first term.
    """
    op = "binary_cross_entropy_with_logits"
    require_reduction(op, reduction)
    if not is_number(pos_weight) or pos_weight < 0:
        got, do = repr(pos_weight), "give 1 for none"
        raise wrong(op, "pos_weight", "a number from 0 on", got, do)
    x = wide(logits)
    parts = _binary(x, as_target(op, target, x), float(pos_weight))
    return reduced(parts, reduction, logits)


@operation
def _binary(x: Any, t: Any, weight: float) -> Any:
    # weight t softplus(-x) + (1 - t) softplus(x): no term is negative, nothing cancels.
    yes, no = weight * t, 1 - t
    line = yes * gnp.maximum(-x, 0) + no * gnp.maximum(x, 0)
    return line + (yes + no) * gnp.log1p(gnp.exp(-gnp.abs(x)))


@_binary.vjp
def _(dy: Any, y: Any, x: Any, t: Any, weight: float, *, needs: dict[str, bool]) -> Any:
    p, rest = both(x)
    dx = dy * ((1 - t) * p - weight * t * rest)
    if not needs["t"]:
        return dx, None
    dt = dy * (weight * softplus(-x) - softplus(x))
    return dx, gnp.unbroadcast(dt, gnp.shape(t))


def focal(
    logits: Any,
    target: Any,
    *,
    gamma: float = 2.0,
    alpha: float | None = None,
    reduction: str = "mean",
) -> Any:
    """Binary cross entropy times (1 - p)**gamma, where p is the share of the truth.

    The target is 0 or 1; `alpha` weighs those that are 1, and 1 - alpha the others.
    """
    op = "focal"
    require_reduction(op, reduction)
    if not is_number(gamma) or gamma < 0:
        raise wrong(op, "gamma", "a number from 0 on", repr(gamma), "give 2")
    if alpha is not None:
        require_share(op, alpha=alpha)
    x = wide(logits)
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
    return dy * _power(z, rest, gamma) * (gamma * p * log_sigmoid(z) - rest)


def _power(z: Any, rest: Any, gamma: float) -> Any:
    """sigmoid(-z)^gamma: a product, or by its logarithm, where no slope is infinite."""
    if gamma in (1, 2, 3, 4):
        return prod([rest] * int(gamma))
    return gnp.exp(-gamma * softplus(z))
