"""TensorFlow's kernels along axes: reductions, order, shapes, indices."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from .arrays import lengths_of, ndim, shape

Tensor = Any


def _reduction(native: Any, logical: Any = None) -> Any:
    """A native reduction; with NumPy's order of booleans."""

    def reduce(x: Tensor, axes: Any, keepdims: bool) -> Tensor:
        run = logical if logical is not None and x.dtype == tf.bool else native
        return run(x, axes, keepdims)

    return reduce


sum, prod = _reduction(tf.reduce_sum), _reduction(tf.reduce_prod)
count = _reduction(tf.math.count_nonzero)
mean = _reduction(tf.reduce_mean)
max = _reduction(tf.reduce_max, tf.reduce_any)
min = _reduction(tf.reduce_min, tf.reduce_all)
any, all = _reduction(tf.reduce_any), _reduction(tf.reduce_all)


def _first(native: Any) -> Any:
    """The position of the extreme; of the first NaN if there is one."""

    def find(x: Tensor, axis: int) -> Tensor:
        if x.dtype == tf.bool:
            x = tf.cast(x, tf.uint8)
        y = native(x, axis, tf.int64)
        if not x.dtype.is_floating:
            return y
        nan = tf.math.is_nan(x)
        at = tf.argmax(tf.cast(nan, tf.uint8), axis, tf.int64)
        return tf.where(tf.reduce_any(nan, axis), at, y)

    return find


argmax, argmin = _first(tf.argmax), _first(tf.argmin)


def cumsum(x: Tensor, axis: int) -> Tensor:
    return tf.cumsum(x, axis)


def cumprod(x: Tensor, axis: int) -> Tensor:
    return tf.math.cumprod(x, axis)


def argsort(x: Tensor, axis: int) -> Tensor:
    """Stable, with NaN after infinity: by value, and then by being NaN."""
    if x.dtype == tf.bool:
        x = tf.cast(x, tf.int32)
    if not x.dtype.is_floating:
        return tf.argsort(x, axis, stable=True)
    nan = tf.math.is_nan(x)
    rest = tf.where(nan, tf.constant(float("inf"), x.dtype), x)
    order = tf.argsort(rest, axis, stable=True)
    late = tf.cast(take_along_axis(nan, order, axis), tf.int32)
    return take_along_axis(order, tf.argsort(late, axis, stable=True), axis)


def sort(x: Tensor, axis: int) -> Tensor:
    return take_along_axis(x, argsort(x, axis), axis)


def searchsorted(x1: Tensor, x2: Tensor, side: str) -> Tensor:
    y = tf.reshape(tf.searchsorted(x1, tf.reshape(x2, [-1]), side), tf.shape(x2))
    if not x1.dtype.is_floating:
        return y
    return tf.where(tf.math.is_nan(x2), tf.size(x1), y)  # NaN comes last


def reshape(x: Tensor, shape: Any) -> Tensor:
    return tf.reshape(x, lengths_of(shape))


def broadcast_to(x: Tensor, shape: Any) -> Tensor:
    return tf.broadcast_to(x, lengths_of(shape))


transpose, expand_dims = tf.transpose, tf.expand_dims
concat, stack, tile = tf.concat, tf.stack, tf.tile
roll, repeat = tf.roll, tf.repeat


def squeeze(x: Tensor, axes: Any) -> Tensor:
    return tf.squeeze(x, axes) if axes else tf.identity(x)  # to it, none means all


def flip(x: Tensor, axes: Any) -> Tensor:
    return tf.reverse(x, axes)


def unstack(x: Tensor, axis: int) -> list[Tensor]:
    return tf.unstack(x, axis=axis)


def split(x: Tensor, sections: int, axis: int) -> list[Tensor]:
    return tf.split(x, sections, axis)


def pad(x: Tensor, widths: Any, value: Tensor) -> Tensor:
    return tf.pad(x, widths, constant_values=value)


def unbroadcast(dy: Tensor, shape: Any) -> Tensor:
    target = lengths_of(shape)
    _, axes = tf.raw_ops.BroadcastGradientArgs(s0=tf.shape(dy), s1=target)
    return tf.reshape(tf.reduce_sum(dy, axes), target)


def _from_front(indices: Tensor, n: Any) -> Tensor:
    if indices.dtype not in (tf.int32, tf.int64):
        indices = tf.cast(indices, tf.int64)
    return tf.where(indices < 0, indices + tf.cast(n, indices.dtype), indices)


def take(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    return tf.gather(x, _from_front(indices, shape(x)[axis]), axis=axis)


def take_along_axis(x: Tensor, indices: Tensor, axis: int) -> Tensor:
    """tf.gather along the last axis, after the others were broadcast."""
    n = ndim(x)
    order = [*(i for i in range(n) if i != axis), axis]
    x, indices = tf.transpose(x, order), tf.transpose(indices, order)
    around = tf.broadcast_dynamic_shape(tf.shape(x)[:-1], tf.shape(indices)[:-1])
    x = tf.broadcast_to(x, tf.concat([around, tf.shape(x)[-1:]], 0))
    indices = tf.broadcast_to(indices, tf.concat([around, tf.shape(indices)[-1:]], 0))
    indices = _from_front(indices, shape(x)[-1])
    y = tf.gather(x, indices, axis=n - 1, batch_dims=n - 1)
    return tf.transpose(y, np.argsort(order))


def diagonal(x: Tensor, offset: int) -> Tensor:
    rows, columns = x.shape[-2:]
    outside = (rows is not None and -offset >= rows) or (
        columns is not None and offset >= columns
    )
    if outside:  # TensorFlow refuses a diagonal without elements
        return tf.reduce_sum(x[..., :0, :], -1)
    return tf.linalg.diag_part(x, k=offset)


def diag(x: Tensor, k: int) -> Tensor:
    return tf.linalg.diag(x, k=k)


def _triangle(x: Tensor, k: int, keep: Any) -> Tensor:
    rows, columns = tf.shape(x)[-2], tf.shape(x)[-1]
    distance = tf.range(columns)[None, :] - tf.range(rows)[:, None]
    return tf.where(keep(distance, k), x, tf.zeros((), x.dtype))


def tril(x: Tensor, k: int) -> Tensor:
    return _triangle(x, k, tf.less_equal)


def triu(x: Tensor, k: int) -> Tensor:
    return _triangle(x, k, tf.greater_equal)
