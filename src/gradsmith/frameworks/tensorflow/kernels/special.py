"""TensorFlow's kernels of special functions, and of complex numbers."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

Tensor = Any


def _erf(x: Tensor) -> Tensor:
    """TensorFlow's own of an infinite float64 is NaN."""
    far = tf.math.is_inf(x)
    near = tf.math.erf(tf.where(far, tf.zeros_like(x), x))
    return tf.where(far, tf.stop_gradient(tf.sign(x)), near)


SPECIAL: dict[str, Any] = {
    "erf": _erf,
    "erfc": tf.math.erfc,
    "erfinv": tf.math.erfinv,
    "gammaln": tf.math.lgamma,
    "digamma": tf.math.digamma,
    "ndtri": tf.math.ndtri,
    "expit": tf.sigmoid,
    "log_expit": tf.math.log_sigmoid,
}

softmax, log_softmax = tf.nn.softmax, tf.nn.log_softmax
where, complex = tf.where, tf.complex
real, imag = tf.math.real, tf.math.imag


def logsumexp(x: Tensor, axes: Any, keepdims: bool) -> Tensor:
    return tf.reduce_logsumexp(x, axes, keepdims)
