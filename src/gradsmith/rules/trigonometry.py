"""Trigonometric and hyperbolic functions.

Formulas are chosen for their accuracy in the tails: tanh' is 1/cosh(x)**2 rather than
1 - y**2, which has lost every digit from x = 9 on in float32.
"""

from __future__ import annotations

from math import factorial, inf, pi
from typing import Any

import numpy as np

from ..core.rule import elementwise, primitive
from .arithmetic import finite, guard, inside, over, slope
from .elementwise import is_complex, is_half
from .wide import BLOCK, NARROW, in_float64, is_narrow

# Trigonometry

elementwise(np.sin, np.cos)
elementwise(np.cos, lambda x: -np.sin(x))
elementwise(np.tan, lambda y: slope(1 + y * y) if is_half(y) else 1 + y * y)


def _arcsin(x: Any) -> Any:
    if is_complex(x):
        return over(1, np.sqrt(1 - x) * np.sqrt(1 + x))
    root = np.sqrt((1 - x) * (1 + x))
    return guard(1 / root, root > 0)


elementwise(
    np.arcsin,
    _arcsin,
    domain=(-1, 1),
    note="0 at -1 and 1, where the slope is infinite, and beyond",
)
elementwise(
    np.arccos,
    lambda x: -_arcsin(x),
    domain=(-1, 1),
    note="0 at -1 and 1, where the slope is infinite, and beyond",
)


# x*x overflows from 1.8e19 on in float32, from 256 on in float16. In float64 it does
# not, and 1e6 elements take 1.9 ms instead of 0.8; np.hypot takes 4.
@in_float64
def _arctan(x: Any) -> Any:
    return over(1, 1 + x * x) if is_complex(x) else 1 / (1 + x * x)


elementwise(np.arctan, _arctan)


# y = atan2(x1, x2). The quotient of x by r, then by r, keeps r**2 from overflowing;
# that of float32 does not in float64.
def _over_square(x: Any, x1: Any, x2: Any) -> Any:
    if is_narrow(x1, x2):
        p = _over_plain_square(x, x1, x2)
        return slope(p, lambda: (x1 != 0) | (x2 != 0))
    r = np.hypot(x1, x2)
    return over(over(x, r), r)


@in_float64
def _over_plain_square(x: Any, x1: Any, x2: Any) -> Any:
    return over(x, x1 * x1 + x2 * x2)


elementwise(
    np.arctan2,
    lambda x1, x2: _over_square(x2, x1, x2),
    lambda x1, x2: -_over_square(x1, x1, x2),
    note="0 at (0, 0)",
)
for _degrees, _factor in (
    (np.deg2rad, pi / 180),
    (np.radians, pi / 180),
    (np.rad2deg, 180 / pi),
    (np.degrees, 180 / pi),
):
    elementwise(_degrees, _factor)


# y = sin(t)/t with t = pi*x, so dy/dt = (cos t - sin(t)/t)/t. That cancels near 0,
# where the series -t/3 + t**3/30 - ... (coefficients (-1)**k 2k/(2k+1)!) takes over.
# sin and cos are those of x less a whole number, which is exact, by their series:
# NumPy's take 8 ms each for 1e6 float64, these 4.
_SINC_COEFFICIENTS = [-1 / 3]
for _k in range(2, 13):
    _SINC_COEFFICIENTS.append(
        -_SINC_COEFFICIENTS[-1] * _k / (_k - 1) / (2 * _k * (2 * _k + 1))
    )
_COS = [(-1) ** k * pi ** (2 * k) / factorial(2 * k) for k in range(11)]
_SIN = [(-1) ** k * pi ** (2 * k + 1) / factorial(2 * k + 1) for k in range(11)]


def polynomial(coefficients: list[float], x: Any) -> Any:
    """c[0] + c[1]*x + c[2]*x**2 + ...; in float16 as far as it knows the numbers."""
    if is_half(x):
        coefficients = [c for c in coefficients if abs(c) > 6e-8]
    if type(x) is np.ndarray:
        return _horner(coefficients, x)
    total: Any = 0
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def _horner(coefficients: list[float], x: np.ndarray) -> Any:
    total = np.full_like(x, coefficients[-1])
    for coefficient in coefficients[-2::-1]:  # in place: half of the time
        total *= x
        total += coefficient
    return total


@in_float64
def _sinc(x: Any) -> Any:
    far = np.abs(x) >= 2 / pi
    ok = far if is_complex(x) else far & (np.abs(x) < inf)
    near, away = guard(pi * x, ~far), np.where(ok, x, 1)
    series = near * polynomial(_SINC_COEFFICIENTS, near * near)
    return np.where(far, guard(_sinc_away(away), ok), pi * series)


def _sinc_away(x: Any) -> Any:
    if is_complex(x):
        return (np.cos(pi * x) - np.sinc(x)) / x
    whole = np.rint(x)
    rest = x - whole
    square = rest * rest
    sign = 1 - 2 * np.abs(whole - 2 * np.rint(0.5 * whole))
    sine = rest * polynomial(_SIN, square) / (pi * x)
    return sign * (polynomial(_COS, square) - sine) / x


elementwise(np.sinc, _sinc, note="0 where x is infinite")

# Hyperbolic functions


# In float32 cosh is 1.5 ULP off, so that its inverse square is 7; formulas by exp are
# 5. In float64 1e6 elements take 2 ms instead of 0.8. Of 10 elements every call counts:
# names looked up once and outputs by position take 1.3 us, else 1.8.
def sech2(x: Any) -> Any:
    """1 / cosh(x)**2."""
    if type(x) is not np.ndarray:
        return _sech2_of_any(x)
    dtype = x.dtype
    if dtype is not _FLOAT32 or x.ndim == 0 or x.size > BLOCK:
        return _sech2(x)
    y = _cosh(x.astype(_FLOAT64))
    _reciprocal(y, y)
    return _square(y, y).astype(dtype)


_cosh, _reciprocal, _square = np.cosh, np.reciprocal, np.square
_FLOAT32, _FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)


def _sech2(x: Any) -> Any:
    if is_complex(x):  # cosh overflows to values whose inverse is NaN
        y = np.tanh(x)
        return 1 - y * y
    if x.dtype.char in NARROW:
        return _sech2_in_float64(x)
    y = np.cosh(x)
    if type(y) is not np.ndarray:
        return np.square(np.reciprocal(y))
    np.reciprocal(y, out=y)  # plain arrays: no more memory than the result's
    return np.square(y, out=y)


_sech2_in_float64 = in_float64(_sech2)
_sech2_of_any = primitive(_sech2)
elementwise(_sech2_of_any, lambda y, x: -2 * (y * np.tanh(x)))

elementwise(np.sinh, lambda x: slope(np.cosh(x)))
elementwise(np.cosh, lambda x: slope(np.sinh(x)))
elementwise(np.tanh, sech2)


@in_float64
def _arcsinh(x: Any) -> Any:
    if is_complex(x):
        return over(1, np.sqrt(1 + 1j * x) * np.sqrt(1 - 1j * x))
    return 1 / np.sqrt(1 + x * x)


def _arccosh(x: Any) -> Any:
    return over(1, finite(np.sqrt(x - 1)) * finite(np.sqrt(x + 1)))


def _arctanh(x: Any) -> Any:
    product = (1 - x) * (1 + x)
    return guard(1 / product, inside(product))


elementwise(np.arcsinh, _arcsinh)
elementwise(
    np.arccosh,
    _arccosh,
    domain=(1, inf),
    note="0 at 1, where the slope is infinite, and below",
)
elementwise(
    np.arctanh,
    _arctanh,
    domain=(-1, 1),
    note="0 at -1 and 1, where the slope is infinite, and beyond",
)
