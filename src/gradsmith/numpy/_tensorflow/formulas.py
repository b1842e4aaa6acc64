"""Elementwise functions that TensorFlow lacks, written with what it has."""

from __future__ import annotations

from math import log
from typing import Any

import tensorflow as tf

Tensor = Any


def sign(x: Tensor) -> Tensor:
    if not x.dtype.is_floating:
        return tf.sign(x)
    return tf.where(tf.math.is_nan(x), tf.stop_gradient(x), tf.sign(x))


def copysign(x1: Tensor, x2: Tensor) -> Tensor:
    size = tf.abs(x1)
    return tf.where(signbit(x2), -size, size)


_SAME_BITS = {2: tf.int16, 4: tf.int32, 8: tf.int64}


def signbit(x: Tensor) -> Tensor:
    if x.dtype.is_floating:
        x = tf.bitcast(x, _SAME_BITS[x.dtype.size])
    return x < tf.zeros((), x.dtype)


def cbrt(x: Tensor) -> Tensor:
    return copysign(tf.pow(tf.abs(x), tf.constant(1 / 3, x.dtype)), x)


def trunc(x: Tensor) -> Tensor:
    return tf.where(x < 0, tf.math.ceil(x), tf.floor(x))


def reciprocal(x: Tensor) -> Tensor:
    if x.dtype.is_integer:
        return tf.truncatediv(tf.ones((), x.dtype), x)
    return tf.math.reciprocal(x)


def fmod(x1: Tensor, x2: Tensor) -> Tensor:
    if x1.dtype.is_floating:
        return x1 - x2 * tf.stop_gradient(trunc(x1 / x2))
    return tf.truncatemod(x1, x2)


def hypot(x1: Tensor, x2: Tensor) -> Tensor:
    """The result doesn't depend on the scale, so that it counts as a constant."""
    x1, x2 = tf.abs(x1), tf.abs(x2)
    top = tf.stop_gradient(tf.maximum(x1, x2))
    zero = tf.equal(top, 0)
    scale = tf.where(zero | tf.math.is_inf(top), tf.ones_like(top), top)
    squares = tf.square(x1 / scale) + tf.square(x2 / scale)
    root = tf.sqrt(tf.where(zero, tf.ones_like(squares), squares))
    y = tf.where(zero, tf.zeros_like(root), root * scale)
    either = tf.math.is_inf(x1) | tf.math.is_inf(x2)
    return tf.where(either, tf.constant(float("inf"), y.dtype), y)


def logaddexp(base: float) -> Any:
    """The greater plus log(1 + base**-distance), to this base."""
    scale = log(base)

    def kernel(x1: Tensor, x2: Tensor) -> Tensor:
        top = tf.maximum(x1, x2)
        same = tf.equal(x1, x2)  # the distance of two infinities is NaN
        gap = tf.where(same, tf.zeros_like(top), -tf.abs(x1 - x2))
        return top + tf.math.log1p(tf.exp(gap * scale)) / scale

    return kernel


def fmax(choose: Any) -> Any:
    def kernel(x1: Tensor, x2: Tensor) -> Tensor:
        if not x1.dtype.is_floating:
            return choose(x1, x2)
        x1, x2 = (
            tf.broadcast_to(x1, _shape(x1, x2)),
            tf.broadcast_to(x2, _shape(x1, x2)),
        )
        other = tf.where(tf.math.is_nan(x1), x2, x1)
        return choose(other, tf.where(tf.math.is_nan(x2), other, x2))

    return kernel


def _shape(x1: Tensor, x2: Tensor) -> Tensor:
    return tf.broadcast_dynamic_shape(tf.shape(x1), tf.shape(x2))
