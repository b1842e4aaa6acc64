"""MLX's elementwise kernels, where its names or conventions are not NumPy's.

Of float64, MLX computes exp, sin, cos and what it makes of them in float32: here are
others in their place.
"""

from __future__ import annotations

from math import log
from typing import Any

import mlx.core as mx

from ....operations.operation import Operation


def _precise(native: Any, formula: Any, slope: Any) -> Any:
    """MLX's function; of float64 a formula, with its derivative at x, where it is y."""
    operation = Operation(formula, closure=False)
    operation.vjp(lambda dy, y, x: dy * slope(y, x))
    operation.jvp(lambda dx, y, x: dx * slope(y, x))
    return lambda x: operation(x) if x.dtype == mx.float64 else native(x)


class _Late:
    """MLX's functions, each found when it is called: observing replaces them."""

    def __getattr__(self, name: str) -> Any:
        def call(*xs: Any) -> Any:
            return getattr(mx, name)(*xs)

        call.__name__ = name
        return call


late = _Late()


def exp_formula(x: Any) -> Any:
    """expm1 is precise; below 0 by the reciprocal, since nothing cancels there."""
    size = mx.expm1(mx.abs(x)) + 1
    return mx.where(x < 0, 1 / size, size)


def sin_formula(x: Any) -> Any:
    t = mx.tan(x / 2)
    return 2 * t / (1 + t * t)


def cos_formula(x: Any) -> Any:
    t = mx.tan(x / 2)
    return (1 - t) * (1 + t) / (1 + t * t)


exp = _precise(late.exp, exp_formula, lambda y, x: y)
sin = _precise(late.sin, sin_formula, lambda y, x: cos(x))
cos = _precise(late.cos, cos_formula, lambda y, x: -sin(x))
# Their own derivatives are made of exp, sin and cos.
_tan = _precise(late.tan, late.tan, lambda y, x: 1 + y * y)
_sinh = _precise(late.sinh, late.sinh, lambda y, x: mx.cosh(x))
_cosh = _precise(late.cosh, late.cosh, lambda y, x: mx.sinh(x))
_expm1 = _precise(late.expm1, late.expm1, lambda y, x: y + 1)
_log2 = _precise(late.log2, late.log2, lambda y, x: 1 / (x * log(2)))
_log10 = _precise(late.log10, late.log10, lambda y, x: 1 / (x * log(10)))


def _sign(x: Any) -> Any:
    """MLX's own sign of NaN is 0."""
    if not mx.issubdtype(x.dtype, mx.floating):
        return mx.sign(x)
    return mx.where(mx.isnan(x), mx.stop_gradient(x), mx.sign(x))


_BITS = {
    mx.float16: mx.int16,
    mx.bfloat16: mx.int16,
    mx.float32: mx.int32,
    mx.float64: mx.int64,
}


def _signbit(x: Any) -> Any:
    x = mx.stop_gradient(x)
    return (mx.view(x, _BITS[x.dtype]) if x.dtype in _BITS else x) < 0


def _conjugate(x: Any) -> Any:
    return mx.conj(x) if x.dtype == mx.complex64 else x


def _reciprocal(x: Any) -> Any:
    if mx.issubdtype(x.dtype, mx.inexact):
        return mx.reciprocal(x)
    return mx.where(mx.abs(x) == 1, x, mx.zeros_like(x))


def _trunc(x: Any) -> Any:
    return mx.where(x < 0, mx.ceil(x), mx.floor(x))


def _remainder(x1: Any, x2: Any) -> Any:
    if mx.issubdtype(x1.dtype, mx.floating):
        return mx.remainder(x1, x2)
    zero = x2 == 0  # as NumPy's
    return mx.where(zero, mx.zeros_like(x1), mx.remainder(x1, _nonzero(x2, zero)))


def _floor_divide(x1: Any, x2: Any) -> Any:
    """What is left without the remainder: the quotient alone may round up, 1 // 0.1."""
    if not mx.issubdtype(x1.dtype, mx.floating):
        zero = x2 == 0
        y = mx.floor_divide(x1, _nonzero(x2, zero))
        return mx.where(zero, mx.zeros_like(y), y)
    x1, x2 = mx.stop_gradient(x1), mx.stop_gradient(x2)
    whole = mx.round((x1 - mx.remainder(x1, x2)) / x2)
    below = mx.where((x1 != 0) & ((x1 < 0) != (x2 < 0)), -1.0, 0.0).astype(x1.dtype)
    whole = mx.where(mx.isinf(x2) & mx.isfinite(x1), below, whole)
    return mx.where(x2 == 0, x1 / x2, whole)


def _nonzero(x: Any, zero: Any) -> Any:
    return mx.where(zero, mx.ones_like(x), x)


def _expm1_complex(x: Any) -> Any:
    """exp(a) cos(b) - 1 = expm1(a) - 2 exp(a) sin(b/2)**2"""
    if x.dtype != mx.complex64:
        return _expm1(x)
    a, b = mx.real(x), mx.imag(x)
    half = mx.sin(b / 2)
    size = mx.exp(a)
    return complex(mx.expm1(a) - 2 * size * half * half, size * mx.sin(b))


def _shift(native: Any, *, left: bool) -> Any:
    """0 where all bits are shifted out, -1 of what is negative; MLX shifts modulo."""

    def kernel(x1: Any, x2: Any) -> Any:
        bits = 8 * x1.dtype.size
        out = x2 >= bits
        y = native(x1, mx.where(out, mx.zeros_like(x2), x2))
        rest = mx.zeros_like(y) if left else mx.where(x1 < 0, -1, 0).astype(y.dtype)
        return mx.where(out, rest, y)

    return kernel


def _logical(native: Any) -> Any:
    return lambda *xs: native(*(x if x.dtype == mx.bool_ else x != 0 for x in xs))


def _also_bool(native: Any, logical: Any) -> Any:
    """A kernel of numbers, and the one that does the same to booleans."""
    return lambda *xs: (logical if xs[0].dtype == mx.bool_ else native)(*xs)


def _xor(x1: Any, x2: Any) -> Any:
    return x1 != x2


_SAME = (
    "negative", "square", "sqrt", "log", "log1p", "arcsin", "arccos",
    "arctan", "tanh", "arcsinh", "arccosh", "arctanh", "isnan", "isinf", "isfinite",
    "floor", "ceil", "subtract", "divide", "arctan2", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal",
)  # fmt: skip
COMPARES_NUMBERS = False
ELEMENTWISE: dict[str, Any] = {name: getattr(late, name) for name in _SAME}
ELEMENTWISE |= {
    "absolute": late.abs,
    "positive": lambda x: x,
    "sign": _sign,
    "reciprocal": _reciprocal,
    "exp": exp,
    "expm1": _expm1_complex,
    "log2": _log2,
    "log10": _log10,
    "sin": sin,
    "cos": cos,
    "tan": _tan,
    "sinh": _sinh,
    "cosh": _cosh,
    "deg2rad": late.radians,
    "rad2deg": late.degrees,
    "trunc": _trunc,
    "rint": late.round,
    "conjugate": _conjugate,
    "signbit": _signbit,
    "logical_not": _logical(late.logical_not),
    "invert": _also_bool(late.bitwise_invert, late.logical_not),
    "add": _also_bool(late.add, late.logical_or),
    "multiply": _also_bool(late.multiply, late.logical_and),
    "floor_divide": _floor_divide,
    "remainder": _remainder,
    "power": late.power,
    "maximum": late.maximum,
    "minimum": late.minimum,
    "logical_and": _logical(late.logical_and),
    "logical_or": _logical(late.logical_or),
    "logical_xor": _logical(_xor),
    "bitwise_and": _also_bool(late.bitwise_and, late.logical_and),
    "bitwise_or": _also_bool(late.bitwise_or, late.logical_or),
    "bitwise_xor": _also_bool(late.bitwise_xor, _xor),
    "left_shift": _shift(late.left_shift, left=True),
    "right_shift": _shift(late.right_shift, left=False),
}


def _not_of_float64(native: Any) -> Any:
    return lambda x: NotImplemented if x.dtype == mx.float64 else native(x)


SPECIAL: dict[str, Any] = {
    "erf": _not_of_float64(late.erf),
    "erfinv": _not_of_float64(late.erfinv),
    "expit": _not_of_float64(late.sigmoid),
}


def clip(x: Any, low: Any, high: Any) -> Any:
    """At a bound the derivative is x's; NaN stays NaN."""
    if low is not None:
        low = low if isinstance(low, mx.array) else mx.array(low, x.dtype)
        x = mx.where((x < low) | mx.isnan(low), low, x)
    if high is not None:
        high = high if isinstance(high, mx.array) else mx.array(high, x.dtype)
        x = mx.where((x > high) | mx.isnan(high), high, x)
    return x


def complex(real: Any, imag: Any) -> Any:
    real, imag = real.astype(mx.float32), imag.astype(mx.float32)
    return real + mx.array(1j) * imag


where, real, imag = mx.where, mx.real, mx.imag
