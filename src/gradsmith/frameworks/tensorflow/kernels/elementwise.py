"""TensorFlow's elementwise kernels, where its names or conventions are not NumPy's."""

from __future__ import annotations

from math import log, pi
from typing import Any

import tensorflow as tf

Tensor = Any


# --- elementwise functions that TensorFlow lacks, written with what it has


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


# --- the tables


def _nonzero(x: Tensor) -> Tensor:
    return x if x.dtype == tf.bool else tf.not_equal(x, tf.zeros((), x.dtype))


def _logical(native: Any) -> Any:
    return lambda *xs: native(*map(_nonzero, xs))


def _also_bool(native: Any, logical: Any) -> Any:
    """A kernel of numbers, and the one that does the same to booleans."""

    def kernel(*xs: Any) -> Tensor:
        is_bool = getattr(xs[0], "dtype", None) == tf.bool
        return logical(*xs) if is_bool else native(*xs)

    return kernel


def _parts(native: Any, join: Any) -> Any:
    def kernel(x: Tensor) -> Tensor:
        if x.dtype.is_complex:
            return join(kernel(tf.math.real(x)), kernel(tf.math.imag(x)))
        value = join is tf.logical_and
        return native(x) if x.dtype.is_floating else tf.fill(tf.shape(x), value)

    return kernel


def _order(native: Any) -> Any:
    """TensorFlow orders no booleans."""

    def kernel(x1: Tensor, x2: Tensor) -> Tensor:
        if x1.dtype == tf.bool:
            x1, x2 = tf.cast(x1, tf.uint8), tf.cast(x2, tf.uint8)
        return native(x1, x2)

    return kernel


_bits = tf.bitwise
COMPARES_NUMBERS = False
ELEMENTWISE: dict[str, Any] = {
    "absolute": tf.abs,
    "negative": tf.negative,
    "positive": tf.identity,
    "sign": sign,
    "reciprocal": reciprocal,
    "square": tf.square,
    "sqrt": tf.sqrt,
    "exp": tf.exp,
    "exp2": lambda x: tf.pow(tf.constant(2, x.dtype), x),
    "expm1": tf.math.expm1,
    "log": tf.math.log,
    "log2": lambda x: tf.math.log(x) / log(2),
    "log10": lambda x: tf.math.log(x) / log(10),
    "log1p": tf.math.log1p,
    "sin": tf.sin,
    "cos": tf.cos,
    "tan": tf.tan,
    "arcsin": tf.asin,
    "arccos": tf.acos,
    "arctan": tf.atan,
    "sinh": tf.sinh,
    "cosh": tf.cosh,
    "tanh": tf.tanh,
    "arcsinh": tf.asinh,
    "arccosh": tf.acosh,
    "arctanh": tf.atanh,
    "deg2rad": lambda x: x * (pi / 180),
    "rad2deg": lambda x: x * (180 / pi),
    "floor": tf.floor,
    "ceil": tf.math.ceil,
    "trunc": trunc,
    "rint": rint,
    "conjugate": tf.math.conj,
    "isnan": _parts(tf.math.is_nan, tf.logical_or),
    "isinf": _parts(tf.math.is_inf, tf.logical_or),
    "isfinite": _parts(tf.math.is_finite, tf.logical_and),
    "signbit": signbit,
    "logical_not": _logical(tf.logical_not),
    "invert": _also_bool(_bits.invert, tf.logical_not),
    "add": _also_bool(tf.add, tf.logical_or),
    "subtract": tf.subtract,
    "multiply": _also_bool(tf.multiply, tf.logical_and),
    "divide": tf.divide,
    "floor_divide": floor_divide,
    "remainder": tf.math.floormod,
    "fmod": fmod,
    "power": tf.pow,
    "arctan2": tf.atan2,
    "maximum": _also_bool(tf.maximum, tf.logical_or),
    "minimum": _also_bool(tf.minimum, tf.logical_and),
    "equal": tf.equal,
    "not_equal": tf.not_equal,
    "less": _order(tf.less),
    "less_equal": _order(tf.less_equal),
    "greater": _order(tf.greater),
    "greater_equal": _order(tf.greater_equal),
    "logical_and": _logical(tf.logical_and),
    "logical_or": _logical(tf.logical_or),
    "logical_xor": _logical(tf.math.logical_xor),
    "bitwise_and": _also_bool(_bits.bitwise_and, tf.logical_and),
    "bitwise_or": _also_bool(_bits.bitwise_or, tf.logical_or),
    "bitwise_xor": _also_bool(_bits.bitwise_xor, tf.math.logical_xor),
    "left_shift": left_shift,
    "right_shift": right_shift,
}


# --- special functions, and complex numbers


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
