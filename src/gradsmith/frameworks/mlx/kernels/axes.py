"""MLX's kernels along axes: reductions, order, shapes, indices."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from ....operations.operation import Operation
from .arrays import cast
from .elementwise import exp

Axes = tuple[int, ...]


def _of_nothing(x: Any, axes: Axes, keepdims: bool, value: float) -> Any:
    """A reduction of an empty array; MLX's own may never end."""
    kept = [1 if i in axes else n for i, n in enumerate(x.shape)]
    shape = kept if keepdims else [n for i, n in enumerate(kept) if i not in axes]
    return mx.full(shape, value, x.dtype)


def sum(x: Any, axes: Axes, keepdims: bool) -> Any:
    if not x.size:
        return _of_nothing(x, axes, keepdims, 0)
    return mx.sum(x, axes, keepdims).astype(x.dtype)  # of small integers in 32 bits


def count(x: Any, axes: Axes, keepdims: bool) -> Any:
    return sum(cast(x, "int64"), axes, keepdims)


def prod(x: Any, axes: Axes, keepdims: bool) -> Any:
    if not x.size:
        return _of_nothing(x, axes, keepdims, 1)
    return mx.prod(x, axes, keepdims).astype(x.dtype)


def mean(x: Any, axes: Axes, keepdims: bool) -> Any:
    if not x.size:
        return _of_nothing(x, axes, keepdims, np.nan)
    return mx.mean(x, axes, keepdims)


def max(x: Any, axes: Axes, keepdims: bool) -> Any:
    return mx.max(x, axes, keepdims)


def min(x: Any, axes: Axes, keepdims: bool) -> Any:
    return mx.min(x, axes, keepdims)


def any(x: Any, axes: Axes, keepdims: bool) -> Any:
    if not x.size:
        return _of_nothing(x.astype(mx.bool_), axes, keepdims, False)
    return mx.any(x, axes, keepdims)


def all(x: Any, axes: Axes, keepdims: bool) -> Any:
    if not x.size:
        return _of_nothing(x.astype(mx.bool_), axes, keepdims, True)
    return mx.all(x, axes, keepdims)


# Of float64, MLX's own are as precise as float32.


def logsumexp(x: Any, axes: Axes, keepdims: bool) -> Any:
    if x.dtype != mx.float64:
        return mx.logsumexp(x, axes, keepdims)
    top = mx.stop_gradient(mx.max(x, axes, keepdims=True))
    top = mx.where(mx.isinf(top), mx.zeros_like(top), top)
    y = mx.log(mx.sum(exp(x - top), axes, keepdims=True)) + top
    return y if keepdims else mx.squeeze(y, axes)


def softmax(x: Any, axis: int) -> Any:
    if x.dtype != mx.float64:
        return mx.softmax(x, axis)
    e = exp(x - mx.stop_gradient(mx.max(x, axis, keepdims=True)))
    return e / mx.sum(e, axis, keepdims=True)


def log_softmax(x: Any, axis: int) -> Any:
    return x - logsumexp(x, (axis,), True)


def argmax(x: Any, axis: int) -> Any:
    return mx.argmax(x, axis)


def argmin(x: Any, axis: int) -> Any:
    return mx.argmin(x, axis)


def cumsum(x: Any, axis: int) -> Any:
    return mx.cumsum(x, axis)


# MLX's own has no forward mode, and its gradient divides by x.


def _cumprod(x: Any, axis: int) -> Any:
    return mx.cumprod(x, axis)


def _cumprod_jvp(dx: Any, y: Any, x: Any, axis: int) -> Any:
    """dy[k] is the sum over i of dx[i] times the product of the others up to x[k].

    Row i of the matrix is x with dx[i] in the place of x[i].
    """
    x, dx = mx.moveaxis(x, axis, -1), mx.moveaxis(dx, axis, -1)
    n = x.shape[-1]
    rows = mx.where(mx.eye(n, dtype=mx.bool_), dx[..., None, :], x[..., None, :])
    terms = _cumprod(rows, -1)
    seen = mx.tril(mx.ones((n, n), mx.bool_)).T  # term i is in y[k] if i <= k
    total = mx.sum(mx.where(seen, terms, mx.zeros_like(terms)), -2)
    return mx.moveaxis(total, -1, axis)


cumprod = Operation(_cumprod, closure=False)
cumprod.jvp(_cumprod_jvp)


def argsort(x: Any, axis: int) -> Any:
    return mx.argsort(x, axis)


def sort(x: Any, axis: int) -> Any:
    return mx.sort(x, axis)


def searchsorted(x1: Any, x2: Any, side: str) -> Any:
    return mx.searchsorted(mx.stop_gradient(x1), mx.stop_gradient(x2), side=side)


def reshape(x: Any, shape: Any) -> Any:
    return mx.reshape(x, shape)


def transpose(x: Any, axes: Axes) -> Any:
    return mx.transpose(x, axes)


def expand_dims(x: Any, axis: int) -> Any:
    return mx.expand_dims(x, axis)


def squeeze(x: Any, axes: Axes) -> Any:
    return mx.squeeze(x, axes) if axes else x  # to it, none means all


def broadcast_to(x: Any, shape: Any) -> Any:
    return mx.broadcast_to(x, shape)


def unbroadcast(dy: Any, shape: Any) -> Any:
    raise TypeError(f"the lengths {shape} are not whole numbers")


def concat(xs: Any, axis: int) -> Any:
    return mx.concatenate(list(xs), axis)


def stack(xs: Any, axis: int) -> Any:
    return mx.stack(list(xs), axis)


def unstack(x: Any, axis: int) -> Any:
    return mx.unstack(x, axis=axis)


def split(x: Any, sections: int, axis: int) -> list[Any]:
    return list(mx.split(x, sections, axis))


def pad(x: Any, widths: Any, value: Any) -> Any:
    return mx.pad(x, widths, constant_values=value)


def flip(x: Any, axes: Axes) -> Any:
    return mx.flip(x, axes)


def roll(x: Any, shifts: Any, axes: Any) -> Any:
    return mx.roll(x, tuple(shifts), tuple(axes))


def tile(x: Any, times: Any) -> Any:
    return mx.tile(x, tuple(times))


def repeat(x: Any, repeats: Any, axis: int) -> Any:
    if isinstance(repeats, mx.array):  # how many there are must be known
        counts = np.broadcast_to(np.array(repeats), (x.shape[axis],))
        return take(x, mx.array(np.repeat(np.arange(x.shape[axis]), counts)), axis)
    return mx.repeat(x, repeats, axis)


def take(x: Any, indices: Any, axis: int) -> Any:
    return mx.take(x, mx.stop_gradient(indices), axis)


def take_along_axis(x: Any, indices: Any, axis: int) -> Any:
    return mx.take_along_axis(x, mx.stop_gradient(indices), axis)


# By where, since MLX's own scatter has no forward mode.


def _distance(rows: int, columns: int) -> Any:
    """How far each element of a matrix is above the diagonal."""
    return mx.arange(columns)[None, :] - mx.arange(rows)[:, None]


def diagonal(x: Any, offset: int) -> Any:
    return mx.diagonal(x, offset, -2, -1)


def diag(x: Any, k: int) -> Any:
    n = len(x)
    before, after = (k, 0) if k > 0 else (0, -k)
    row = mx.pad(x, (before, after))
    return mx.where(_distance(n + abs(k), n + abs(k)) == k, row, mx.zeros_like(row))


def _triangle(x: Any, keep: Any) -> Any:
    return mx.where(keep(_distance(*x.shape[-2:])), x, mx.zeros((), x.dtype))


def tril(x: Any, k: int) -> Any:
    return _triangle(x, lambda distance: distance <= k)


def triu(x: Any, k: int) -> Any:
    return _triangle(x, lambda distance: distance >= k)
