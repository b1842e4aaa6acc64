"""Elementwise functions that TensorFlow lacks, written with what it has."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

Tensor = Any


def sign(x: Tensor) -> Tensor:
    if not x.dtype.is_floating:
        return tf.sign(x)
    return tf.where(tf.math.is_nan(x), tf.stop_gradient(x), tf.sign(x))


_SAME_BITS = {2: tf.int16, 4: tf.int32, 8: tf.int64}


def signbit(x: Tensor) -> Tensor:
    if x.dtype.is_floating:
        x = tf.bitcast(x, _SAME_BITS[x.dtype.size])
    return x < tf.zeros((), x.dtype)


def clip(x: Tensor, low: Tensor | None, high: Tensor | None) -> Tensor:
    """At a bound the derivative is x's; an upper bound below the lower one wins."""
    y = x if low is None else tf.maximum(x, low)
    return y if high is None else tf.minimum(y, high)


def trunc(x: Tensor) -> Tensor:
    return tf.where(x < 0, tf.math.ceil(x), tf.floor(x))


def reciprocal(x: Tensor) -> Tensor:
    if x.dtype.is_integer:
        return tf.truncatediv(tf.ones((), x.dtype), x)
    return tf.math.reciprocal(x)


def rint(x: Tensor) -> Tensor:
    if x.dtype.is_complex:
        return tf.complex(tf.round(tf.math.real(x)), tf.round(tf.math.imag(x)))
    return tf.round(x)


def fmod(x1: Tensor, x2: Tensor) -> Tensor:
    """For what is positive it is floormod, whose value is exact for any quotient."""
    if not x1.dtype.is_floating:
        return tf.truncatemod(x1, x2)
    minus = signbit(x1)
    rest = tf.math.floormod(tf.where(minus, -x1, x1), tf.abs(x2))
    return tf.where(minus, -rest, rest)


def floor_divide(x1: Tensor, x2: Tensor) -> Tensor:
    """What is left without the remainder: the quotient alone may round up, 1 // 0.1."""
    if not x1.dtype.is_floating:
        return tf.math.floordiv(x1, x2)
    x1, x2 = tf.stop_gradient(x1), tf.stop_gradient(x2)
    rest = fmod(x1, x2)
    below = tf.not_equal(rest, 0) & tf.not_equal(rest < 0, x2 < 0)
    whole = tf.round((x1 - rest) / x2) - tf.cast(below, x1.dtype)
    return tf.where(tf.equal(x2, 0), x1 / x2, whole)


def left_shift(x1: Tensor, x2: Tensor) -> Tensor:
    return _all_out(x1, x2, tf.bitwise.left_shift(x1, x2))


def right_shift(x1: Tensor, x2: Tensor) -> Tensor:
    y = tf.bitwise.right_shift(x1, x2)
    return _all_out(x1, x2, y) if x1.dtype.is_unsigned else y


def _all_out(x1: Tensor, x2: Tensor, y: Tensor) -> Tensor:
    """0 where all bits are shifted out; TensorFlow keeps one."""
    bits = tf.constant(8 * x1.dtype.size, x1.dtype)
    return tf.where(x2 >= bits, tf.zeros((), y.dtype), y)
