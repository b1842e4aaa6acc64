"""The parts of the cross entropy: one loss for each row of logits."""

from __future__ import annotations

from typing import Any

from .. import numpy as gnp
from ..operations.define import custom_gradient
from ._inputs import classes_along
from .exponentials import off_greatest


class Rows:
    """Logits along an axis, their logarithm of a sum and their shares."""

    def __init__(self, x: Any, axis: int) -> None:
        self.off, self.top = off_greatest(x, axis)
        self.e = gnp.exp(self.off)
        total = gnp.sum(self.e, axis=axis, keepdims=True)
        self.total = gnp.where(total == 0, gnp.ones_like(total), total)
        self.log_total = gnp.log(self.total)

    @property
    def shares(self) -> Any:
        return self.e / self.total

    @property
    def logsumexp(self) -> Any:
        return self.log_total + self.top


@custom_gradient
def of_classes(
    x: Any, labels: Any, axis: int, smoothing: float, ignored: Any, z_loss: float
) -> Any:
    """Rows of -log(softmax(x)) at the label; 0 where it is to be ignored.

    With q, 1 at the label and else 0, then smoothed, and l = logsumexp(x), the loss is
    l - sum(q x) + z l^2, and its gradient softmax(x) (1 + 2 z l) - q.
    """
    rows = Rows(x, axis)
    labels = gnp.expand_dims(labels, axis)
    kept = gnp.not_equal(labels, ignored)
    places = gnp.where(kept, labels, gnp.zeros_like(labels))
    picked = gnp.take_along_axis(rows.off, places, axis=axis)
    y = rows.log_total - (1 - smoothing) * picked
    if smoothing:
        y = y - smoothing * gnp.mean(rows.off, axis=axis, keepdims=True)
    y = _with_z_loss(y, rows, z_loss)
    each = _each(smoothing, x, axis)

    def grad(dy: Any) -> Any:
        p = _share_of_z_loss(rows, z_loss)
        hot = gnp.equal(classes_along(x, axis), places)
        q = gnp.where(hot, 1 - smoothing + each, each)
        dx = (p - gnp.astype(q, x.dtype)) * gnp.expand_dims(dy, axis)
        return {"x": gnp.where(kept, dx, 0.0)}

    return gnp.squeeze(gnp.where(kept, y, 0.0), axis), grad


@custom_gradient
def of_shares(x: Any, q: Any, axis: int, smoothing: float, z_loss: float) -> Any:
    """Rows of -sum(q log(softmax(x))), where q are shares.

    The gradient by x is softmax(x) sum(q) - q, that by q is -log(softmax(x)).
    """
    smooth = q
    if smoothing:
        smooth = q * (1 - smoothing) + _each(smoothing, x, axis)
    rows = Rows(x, axis)
    mass = gnp.sum(smooth, axis=axis, keepdims=True)
    inner = gnp.where(smooth == 0, 0.0, smooth * rows.off)  # a masked logit is -inf
    y = mass * rows.log_total - gnp.sum(inner, axis=axis, keepdims=True)
    y = _with_z_loss(y, rows, z_loss)

    def grad(dy: Any) -> Any:
        dy = gnp.expand_dims(dy, axis)
        extra = _share_of_z_loss(rows, z_loss) - rows.shares if z_loss else 0.0
        dq = (rows.log_total - rows.off) * (1 - smoothing)
        dq = gnp.where(gnp.isfinite(dq), dq, 0.0)
        return (rows.shares * mass - smooth + extra) * dy, dq * dy

    return gnp.squeeze(y, axis), grad


def _each(smoothing: float, x: Any, axis: int) -> Any:
    """The share that smoothing gives to each class."""
    n = gnp.shape(x)[axis]
    return smoothing / (n if isinstance(n, int) else gnp.astype(n, x.dtype))


def _with_z_loss(y: Any, rows: Rows, z_loss: float) -> Any:
    if not z_loss:
        return y
    return y + (z_loss * rows.logsumexp) * rows.logsumexp


def _share_of_z_loss(rows: Rows, z_loss: float) -> Any:
    """The gradient of logsumexp(x) and of the z-loss."""
    if not z_loss:
        return rows.shares
    most = gnp.finfo(rows.e).max
    return rows.shares * gnp.clip(1 + 2 * z_loss * rows.logsumexp, -most, most)
