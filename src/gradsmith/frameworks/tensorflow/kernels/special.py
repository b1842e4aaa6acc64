"""TensorFlow's kernels of special functions, and of complex numbers."""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any

import tensorflow as tf

Tensor = Any


def _erf(x: Tensor) -> Tensor:
    """TensorFlow's own of an infinite float64 is NaN."""
    far = tf.math.is_inf(x)
    near = tf.math.erf(tf.where(far, tf.zeros_like(x), x))
    return tf.where(far, tf.stop_gradient(tf.sign(x)), near)


def _ndtr(x: Tensor) -> Tensor:
    return 0.5 * tf.math.erfc(-x / sqrt(2))


def _log_ndtr(x: Tensor) -> Tensor:
    """log(ndtr(x)); below -5, where ndtr underflows, by erfcx's continued fraction.

    ndtr(x) = exp(-x**2 / 2) / (sqrt(2 pi) t) with t = -x + 1/(-x + 2/(-x + 3/...)).
    """
    far = x < -5
    z = tf.where(far, -x, 5 * tf.ones_like(x))
    t = z
    for k in range(30, 0, -1):
        t = z + k / t
    tail = -0.5 * z * z - tf.math.log(t) - 0.5 * log(2 * pi)
    near = tf.where(far, tf.zeros_like(x), x)
    # log1p keeps the digits of what is close to 1.
    upper = tf.math.log1p(-_ndtr(-tf.where(near > 0, near, tf.zeros_like(x))))
    lower = tf.math.log(_ndtr(tf.where(near > 0, tf.zeros_like(x), near)))
    return tf.where(far, tail, tf.where(near > 0, upper, lower))


SPECIAL: dict[str, Any] = {
    "erf": _erf,
    "erfc": tf.math.erfc,
    "erfinv": tf.math.erfinv,
    "gammaln": tf.math.lgamma,
    "digamma": tf.math.digamma,
    "ndtr": _ndtr,
    "ndtri": tf.math.ndtri,
    "log_ndtr": _log_ndtr,
    "expit": tf.sigmoid,
    "log_expit": tf.math.log_sigmoid,
}

softmax, log_softmax = tf.nn.softmax, tf.nn.log_softmax
where, complex = tf.where, tf.complex
real, imag = tf.math.real, tf.math.imag


def logsumexp(x: Tensor, axes: Any, keepdims: bool) -> Tensor:
    return tf.reduce_logsumexp(x, axes, keepdims)
