"""TensorFlow's elementwise kernels, where its names or conventions are not NumPy's."""

from __future__ import annotations

from math import log, pi
from typing import Any

import tensorflow as tf

from . import formulas

Tensor = Any


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
ELEMENTWISE: dict[str, Any] = {
    "absolute": tf.abs,
    "negative": tf.negative,
    "positive": tf.identity,
    "sign": formulas.sign,
    "reciprocal": formulas.reciprocal,
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
    "trunc": formulas.trunc,
    "rint": formulas.rint,
    "conjugate": tf.math.conj,
    "isnan": _parts(tf.math.is_nan, tf.logical_or),
    "isinf": _parts(tf.math.is_inf, tf.logical_or),
    "isfinite": _parts(tf.math.is_finite, tf.logical_and),
    "signbit": formulas.signbit,
    "logical_not": _logical(tf.logical_not),
    "invert": _also_bool(_bits.invert, tf.logical_not),
    "add": _also_bool(tf.add, tf.logical_or),
    "subtract": tf.subtract,
    "multiply": _also_bool(tf.multiply, tf.logical_and),
    "divide": tf.divide,
    "floor_divide": formulas.floor_divide,
    "remainder": tf.math.floormod,
    "fmod": formulas.fmod,
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
    "left_shift": formulas.left_shift,
    "right_shift": formulas.right_shift,
}
