"""The parts of the cross entropy: one loss for each row of logits."""

from __future__ import annotations

from math import prod
from typing import Any

from .. import numpy as gnp
from ..operations.define import custom_gradient
from ..program.kernels.mode import in_gpu_kernel
from ._inputs import classes_along, like, times, wide
from .exponentials import Shares

EVERY = "every label is a class, and none is ignored"


@custom_gradient
def of_classes(
    x: Any,
    labels: Any,
    axis: int,
    smoothing: float,
    ignored: Any,
    z_loss: float,
    n: Any = None,
    total: bool = False,
) -> Any:
    """Rows of -log(softmax(x)) / n at the label, or their total; 0 where ignored.

    With q, 1 at the label and else 0, then smoothed, and l = logsumexp(x), the loss is
    l - sum(q x) + z l^2, and its gradient softmax(x) (1 + 2 z l) - q. So that they are
    added up to a mean, all is divided by n here: then dy is 1, as a rule. If n is
    EVERY, it is their number, and a label that is no class is out of bounds. Half
    precision is converted here, not before: a kernel reads and writes it as it is.
    """
    given, x = x, wide(x)
    labels = gnp.expand_dims(labels, axis)
    classes = _length(x, axis, labels)
    # Out of bounds, where it would count from the end
    places = gnp.where(labels < 0, classes, labels)
    if isinstance(n, str):
        n, kept = prod(gnp.shape(labels)), None
    else:
        kept = gnp.not_equal(labels, ignored)
        places = gnp.where(kept, places, gnp.zeros_like(labels))
        if in_gpu_kernel():  # which need not even read the others
            x = gnp.where(kept, x, gnp.zeros_like(x))
    rows = Shares(x, axis)
    picked = gnp.take_along_axis(rows.off, places, axis=axis)
    if kept is not None:  # maybe not checked, and some compilers take the last class
        picked = gnp.where(places < classes, picked, gnp.nan)
    each, loss = _each(smoothing, x, axis), -picked
    if smoothing:
        # Not the mean, whose sum may overflow
        among = gnp.sum(rows.off * each, axis=axis, keepdims=True)
        loss = (1 - smoothing) * loss - among
    # Infinite where the label is masked, or another logit is plus infinity
    y = gnp.where(loss == gnp.inf, loss, rows.log_total + loss)
    y = _with_z_loss(y, rows, z_loss)
    scale = 1.0
    if n is not None:
        some = n if isinstance(n, int) else gnp.maximum(gnp.astype(n, x.dtype), 1)
        scale = 1 / some
        y = y * scale

    def grad(dy: Any) -> Any:
        hot = gnp.equal(classes_along(x, axis), places)
        if smoothing or z_loss:
            q = gnp.where(hot, 1 - smoothing + each, each)
            dx = (_share_of_z_loss(rows, z_loss) - gnp.astype(q, x.dtype)) * scale
            dx = _where(kept, dx)
        else:
            # Of a label that is nearly sure p - 1 has few digits, the others' sum all
            greatest = rows.close & (picked == 0)
            others = gnp.where(greatest, rows.rest, rows.total - gnp.exp(picked))
            share = scale / rows.total  # one product for each element
            if in_gpu_kernel():
                share, kept_here = _where(kept, share), None
            else:
                kept_here = kept
            first, rest = -others * share, rows.e * share
            dx = gnp.where(hot, _where(kept_here, first), _where(kept_here, rest))
        dy = wide(dy if total else gnp.expand_dims(dy, axis))
        return {"x": like(dx * _where(kept, dy), given)}

    y = gnp.squeeze(_where(kept, y), axis)
    return like(gnp.sum(y) if total else y, given), grad


@custom_gradient
def of_shares(x: Any, q: Any, axis: int, smoothing: float, z_loss: float) -> Any:
    """Rows of -sum(q log(softmax(x))), where q are shares.

    The gradient by x is softmax(x) sum(q) - q, that by q is -log(softmax(x)).
    """
    smooth = q
    if smoothing:
        smooth = q * (1 - smoothing) + _each(smoothing, x, axis)
    rows = Shares(x, axis)
    mass = gnp.sum(smooth, axis=axis, keepdims=True)
    inner = times(smooth, rows.off)  # a masked logit is -inf
    y = mass * rows.log_total - gnp.sum(inner, axis=axis, keepdims=True)
    y = _with_z_loss(y, rows, z_loss)

    def grad(dy: Any) -> Any:
        dy = gnp.expand_dims(dy, axis)
        extra = _share_of_z_loss(rows, z_loss) - rows.of_all if z_loss else 0.0
        dq = (rows.log_total - rows.off) * (1 - smoothing)
        dq = gnp.where(gnp.isfinite(dq), dq, 0.0)
        return (rows.of_all * mass - smooth + extra) * dy, dq * dy

    return gnp.squeeze(y, axis), grad


def _where(kept: Any, y: Any) -> Any:
    return y if kept is None else gnp.where(kept, y, 0.0)


def _each(smoothing: float, x: Any, axis: int) -> Any:
    """The share that smoothing gives to each class."""
    return smoothing / _length(x, axis, x)


def _length(x: Any, axis: int, beside: Any) -> Any:
    """Of an axis; an array like another one if a graph leaves it open."""
    n = gnp.shape(x)[axis]
    return n if isinstance(n, int) else gnp.astype(n, beside.dtype)


def _with_z_loss(y: Any, rows: Shares, z_loss: float) -> Any:
    if not z_loss:
        return y
    more = (z_loss * rows.logsumexp) * rows.logsumexp
    return gnp.where(more == gnp.inf, more, y + more)


def _share_of_z_loss(rows: Shares, z_loss: float) -> Any:
    """The gradient of logsumexp(x) and of the z-loss."""
    if not z_loss:
        return rows.of_all
    most = gnp.finfo(rows.e).max
    return rows.of_all * gnp.clip(1 + 2 * z_loss * rows.logsumexp, -most, most)
