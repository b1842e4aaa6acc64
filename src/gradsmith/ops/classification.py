"""Losses of classes: cross entropy and divergence."""

from __future__ import annotations

from typing import Any

from .. import numpy as gnp
from ..core.arrays import framework_of
from ..operations.define import custom_gradient
from ..operations.fusing import made_again
from . import _rows
from ._inputs import (
    NARROW,
    is_number,
    is_whole,
    kind,
    known_values,
    number,
    prediction,
    require_axis,
    require_share,
    shape_of,
    wide,
    wrong,
)
from ._reductions import reduced, require_reduction
from .exponentials import Shares


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

    Labels are integers in the shape of the logits without `axis`, or probabilities in
    the shape of the logits. The label `ignore_index` has no loss and doesn't count in
    the mean. `z_loss` adds z_loss * logsumexp(logits)**2, which keeps logits small.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> logits, labels = np.array([[1000.0, 0.0], [0.0, 1.0]]), np.array([0, 1])
    >>> float(gs.ops.cross_entropy(logits, labels).round(4))
    0.1566
    >>> gs.grad(gs.ops.cross_entropy)(logits, labels).round(4)
    array([[-0.    ,  0.    ],
           [ 0.1345, -0.1345]])

    Raises
    ------
    GradsmithError
        If the reduction is not "mean", "sum" or "none"; the labels have another
        shape, another kind of dtype, or a class that doesn't exist; or an option is
        out of range.
    """
    axis, ignore_index = number(axis), number(ignore_index)
    label_smoothing, z_loss = number(label_smoothing), number(z_loss)
    if reduction == "mean":
        # With a label that is ignored or no class, the kernel says that it is not this
        given = axis, label_smoothing, ignore_index, z_loss, _rows.EVERY, True
        y = made_again(_rows.of_classes, logits, labels, *given)
        if y is not NotImplemented:  # 8 us less
            return y
    op = "cross_entropy"
    require_reduction(op, reduction)
    require_share(op, label_smoothing=label_smoothing)
    if not is_number(z_loss) or z_loss < 0:
        raise wrong(op, "z_loss", "a number from 0 on", repr(z_loss), "give 0 for none")
    if not is_whole(ignore_index):
        got, do = repr(ignore_index), "give a label that no row has, -1 say, for none"
        raise wrong(op, "ignore_index", "a whole number", got, do)
    x = logits if kind(logits) in NARROW else prediction(op, logits, "logits")
    from_front = require_axis(op, x, axis)
    labels = _as_array(labels, x)
    if _is_whole(op, labels):
        labels, are_kept = _classes(op, x, labels, from_front, ignore_index)
        given = x, labels, axis, label_smoothing, ignore_index, z_loss
        total, n = reduction != "none", None
        if reduction == "mean" and are_kept:
            n = _rows.EVERY
        elif reduction == "mean":
            kept = gnp.not_equal(labels, ignore_index)
            n = gnp.count_nonzero(kept, keepdims=True)
        return _rows.of_classes(*given, n, total)
    x = wide(x)
    q = _same_shape(op, labels, x)
    rows = _rows.of_shares(x, q, from_front, label_smoothing, z_loss)
    return reduced(rows, reduction, logits)


def _as_array(labels: Any, x: Any) -> Any:
    """Labels in lists, or a number, as an array beside x."""
    is_given = isinstance(labels, (list, tuple, int, float))
    return gnp.asarray(labels, like=x) if is_given else labels


def _is_whole(op: str, labels: Any) -> bool:
    name = kind(labels)
    if name is None or name == "bool" or name.startswith("complex"):
        got = type(labels).__name__ if name is None else name
        expected = "an array of whole numbers (classes) or of floats (probabilities)"
        raise wrong(op, "labels", expected, got, "convert them first")
    return "int" in name


def _classes(op: str, x: Any, labels: Any, axis: int, ignored: int) -> tuple[Any, bool]:
    """Labels whose shape and, where it can be seen, whose range is right.

    And whether it is seen that none is ignored.
    """
    n, shape = x.shape[axis], tuple(x.shape)
    expected = (*shape[:axis], *shape[axis + 1 :])
    given = shape_of(labels)
    if given != expected and not _fits(given, expected):
        raise wrong(
            op,
            "labels",
            f"shape {expected}, that of the logits without axis {axis}",
            f"shape {given}",
            "give one label for each row of logits (or probabilities, as floats)",
        )
    are_kept = n is not None and _require_range(op, labels, n, ignored)
    # A class, or the label to ignore, may be beyond 8 bits.
    is_wide = kind(labels) in ("int32", "int64")
    whole = labels if is_wide else gnp.astype(labels, "int32")
    return whole, are_kept


def _require_range(op: str, labels: Any, n: int, ignored: int) -> bool:
    """Whether it is seen that no label is ignored.

    Raises if it is seen that one is out of range.
    """
    values = known_values(labels)
    if values is None or not values.size:
        return False
    if values.min() >= 0 and values.max() < n:
        return not 0 <= ignored < n
    bad = values[(values != ignored) & ((values < 0) | (values >= n))]
    if bad.size:
        expected = f"classes from 0 to {n - 1}, or {ignored} to ignore"
        do = "correct the labels, or give ignore_index="
        raise wrong(op, "labels", expected, f"the class {bad[0]}", do)
    return False


def _fits(shape: tuple[Any, ...], expected: tuple[Any, ...]) -> bool:
    pairs = zip(shape, expected, strict=False)
    same = all(n == m or n is None or m is None for n, m in pairs)
    return same and len(shape) == len(expected)


def _same_shape(op: str, labels: Any, x: Any) -> Any:
    if not _fits(shape_of(labels), tuple(x.shape)):
        raise wrong(
            op,
            "labels",
            f"probabilities in the shape of the logits, {tuple(x.shape)}",
            f"shape {tuple(labels.shape)}",
            "give a probability for each class (or classes, as whole numbers)",
        )
    return labels if kind(labels) == kind(x) else gnp.astype(labels, x.dtype)


def kl_divergence(
    logits: Any, labels: Any, *, axis: int = -1, reduction: str = "mean"
) -> Any:
    """sum(q log(q / softmax(logits))) of probabilities q; terms where q is 0 are 0.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> logits, q = np.array([[1000.0, 0.0]]), np.array([[0.5, 0.5]])
    >>> float(gs.ops.kl_divergence(logits, q).round(4))
    499.3069
    >>> gs.grad(gs.ops.kl_divergence)(logits, q).round(4)
    array([[ 0.5, -0.5]])

    Raises
    ------
    GradsmithError
        If the reduction is not "mean", "sum" or "none", or the labels are not
        floats in the shape of the logits.
    """
    op = "kl_divergence"
    require_reduction(op, reduction)
    x = prediction(op, logits, "logits")
    axis = require_axis(op, x, number(axis))
    labels = _as_array(labels, x)
    if framework_of(labels) is None or "float" not in str(kind(labels)):
        got = str(kind(labels) or type(labels).__name__)
        raise wrong(
            op, "labels", "an array of floats (probabilities)", got, "convert them"
        )
    q = _same_shape(op, labels, x)
    return reduced(_divergence(x, q, axis), reduction, logits)


@custom_gradient
def _divergence(x: Any, q: Any, axis: int) -> Any:
    rows = Shares(x, axis)
    none = q == 0
    log_q = gnp.log(gnp.where(none, gnp.ones_like(q), q))
    off = gnp.where(none, 0.0, log_q - (rows.off - rows.log_total))
    mass = gnp.sum(q, axis=axis, keepdims=True)

    def grad(dy: Any) -> Any:
        dy = gnp.expand_dims(dy, axis)
        dq = gnp.where(none, 0.0, off + 1)  # its slope at 0 is infinite
        return (rows.of_all * mass - q) * dy, dq * dy

    return gnp.sum(q * off, axis=axis), grad
