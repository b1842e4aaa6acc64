"""Padding: values continued beyond the edges of an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import UnsupportedOperationError
from ..core.rule import composite, differentiable, primitive
from .indexing import along, scatter

STATISTICS = {
    "maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median,
}  # fmt: skip


def pad(array: Any, pad_width: Any, mode: Any = "constant", **options: Any) -> Any:
    if callable(mode):
        raise UnsupportedOperationError(
            "np.pad is not differentiated with a function as its mode: that function "
            "writes into an array. Compute the edges, and np.concatenate them."
        )
    if mode in STATISTICS:
        return pad_with_statistic(array, pad_width, STATISTICS[mode], **options)
    return pad_linearly(array, pad_width, mode, **options)


composite(np.pad, pad)


def pairs(width: Any, ndim: int) -> list[list[Any]]:
    """A pair (before, after) for each axis, from all that `np.pad` accepts."""
    if isinstance(width, dict):
        full = np.zeros((ndim, 2), int)
        for axis, both in width.items():
            full[axis] = both
        width = full
    return np.broadcast_to(width, (ndim, 2)).tolist()


def pad_with_statistic(
    x: Any, pad_width: Any, statistic: Any, stat_length: Any = None
) -> Any:
    if not x.size:
        return pad_linearly(x, pad_width, "edge")  # right, or NumPy's own error
    lengths = pairs(stat_length, x.ndim)
    for axis, (before, after) in enumerate(pairs(pad_width, x.ndim)):
        n = x.shape[axis]
        first, last = (n if m is None else min(m, n) for m in lengths[axis])
        left = statistic(x[along(axis, slice(first))], axis=axis, keepdims=True)
        right = left
        if min(first, last) < n:
            right = x[along(axis, slice(n - last, n))]
            right = statistic(right, axis=axis, keepdims=True)
        parts = [np.repeat(left, before, axis), x, np.repeat(right, after, axis)]
        x = np.concatenate(parts, axis)
    return x


# The other modes are linear up to a constant, one axis after the other.


@primitive
def pad_linearly(x: Any, pad_width: Any, mode: Any, **kwargs: Any) -> Any:
    return np.pad(x, pad_width, mode, **kwargs)


def pad_vjp(dy: Any, y: Any, x: Any, pad_width: Any, mode: Any, **options: Any) -> Any:
    for axis, (before, after) in enumerate(pairs(pad_width, x.ndim)):
        if before or after:
            dy = fold(dy, axis, (before, after), mode, options.get("reflect_type"))
    return dy


def pad_jvp(dx: Any, y: Any, x: Any, pad_width: Any, mode: Any, **options: Any) -> Any:
    mode = "constant" if mode == "empty" else mode
    linear = {k: v for k, v in options.items() if k == "reflect_type"}
    return pad_linearly(dx, pad_width, mode, **linear)


differentiable(pad_linearly, pad_vjp, pad_jvp)


def fold(dy: Any, axis: int, width: tuple[int, int], mode: Any, kind: Any) -> Any:
    """The transpose of padding one axis."""
    before, after = width
    n = dy.shape[axis] - before - after
    inside = dy[along(axis, slice(before, before + n))]
    if mode in ("constant", "empty") or not dy.size:
        return inside
    outside = np.r_[:before, before + n : before + n + after]
    dy = np.take(dy, outside, axis)
    if mode == "linear_ramp" or kind == "odd":
        sources, weights = taps(n, width, mode, kind)
        column = (-1,) + (1,) * (dy.ndim - axis - 1)
        weights = [w[outside].astype(dy.dtype).reshape(column) for w in weights]
        dy = np.concatenate([dy * w for w in weights], axis)
        source = np.concatenate([s[outside] for s in sources])
    else:
        source = np.pad(np.arange(n), width, mode)[outside]
    return inside + scatter(dy, along(axis, source), inside.shape)


# A ramp goes to x[0] or x[-1]. An odd reflection about x[0] is 2*x[0] - x[i], and a
# reflection of that adds multiples of x[-1]. So y = a*x[0] + b*x[-1] + c*x[i]; padding
# unit vectors gives a and b, and a + b + c = 1 since constants stay constant.
def taps(n: int, width: tuple[int, int], mode: Any, kind: Any) -> tuple[Any, Any]:
    """From where, and with which weights, padded elements are summed."""
    options = {"reflect_type": kind} if kind else {}
    unit = np.eye(1, n)[0]
    a = np.pad(unit, width, mode, **options)
    b = np.pad(unit[::-1], width, mode, **options) if n > 1 else 0 * a
    first, last = np.zeros(a.size, int), np.full(a.size, n - 1)
    if mode == "linear_ramp":
        return (first, last), (a, b)
    i = np.pad(np.arange(n), width, mode)
    c = np.where((i > 0) & (i < n - 1), 1 - a - b, 0)
    return (first, last, i), (a, b, c)
