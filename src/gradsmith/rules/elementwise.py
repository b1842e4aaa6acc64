"""Elementary functions of one argument, and of two corresponding ones.

Formulas are chosen for their accuracy in the tails: tanh' is 1/cosh(x)**2 rather than
1 - y**2, which has lost every digit from x = 9 on in float32. They are also finite to
every order: where one would multiply 0 by infinity in its own derivative, it is a
function with a rule of its own (`logistic`, `sech2`).
"""

from __future__ import annotations

from math import inf, log, pi
from typing import Any

import numpy as np

from .._rule import elementwise, nondifferentiable, primitive
from .arithmetic import finite, guard, inside, over


def is_complex(x: Any) -> bool:
    return x.dtype.kind == "c"


def _is_half(x: Any) -> bool:
    return x.dtype.char == "e"


_OVERFLOW = "0 where it overflows, so that a masked branch stays finite"

# Exponentials and logarithms

elementwise(np.exp, lambda y: finite(y, np.max), note=_OVERFLOW)
elementwise(np.exp2, lambda y: log(2) * finite(y), note=_OVERFLOW)
elementwise(np.expm1, lambda x: finite(np.exp(x)), note=_OVERFLOW)

# Below these the inverse overflows.
_LEAST = {kind: 1 / float(np.finfo(kind).max) for kind in "efd"}


def _log(x: Any) -> Any:
    if is_complex(x):
        return over(1, x)
    return guard(1 / x, x > _LEAST.get(x.dtype.char, 0))


def _log1p(x: Any) -> Any:
    return guard(1 / (1 + x), x != -1 if is_complex(x) else x > -1)


elementwise(np.log, _log, domain=(0, inf), note="0 from 0 down")
elementwise(
    np.log2, lambda x: 1 / log(2) * _log(x), domain=(0, inf), note="0 from 0 down"
)
elementwise(
    np.log10, lambda x: 1 / log(10) * _log(x), domain=(0, inf), note="0 from 0 down"
)
elementwise(np.log1p, _log1p, domain=(-1, inf), note="0 from -1 down")


@primitive
def logistic(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


elementwise(logistic, lambda y, x: y * logistic(-x))


# y = log(exp(x1) + exp(x2)): the partials are the shares of the two exponentials, and 0
# where both are infinite.
def _share(difference: Any) -> Any:
    ok = difference == difference
    return guard(logistic(guard(difference, ok)), ok)


elementwise(
    np.logaddexp,
    lambda x1, x2: _share(x1 - x2),
    lambda x1, x2: _share(x2 - x1),
    note="0 where both are -inf",
)
elementwise(
    np.logaddexp2,
    lambda x1, x2: _share((x1 - x2) * log(2)),
    lambda x1, x2: _share((x2 - x1) * log(2)),
    note="0 where both are -inf",
)

# Roots

elementwise(
    np.sqrt,
    lambda y: guard(0.5 / y, inside(y)),
    domain=(0, inf),
    kinks=(0.0,),
    note="0 at 0, where the slope is infinite, and below",
)
elementwise(
    np.cbrt,
    lambda y: finite(1 / 3 / (y * y)),
    kinks=(0.0,),
    note="0 at 0, where the slope is infinite",
)

# Trigonometry

elementwise(np.sin, lambda x: np.cos(x))
elementwise(np.cos, lambda x: -np.sin(x))
elementwise(np.tan, lambda y: finite(1 + y * y) if _is_half(y) else 1 + y * y)


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


# In float16 x*x would overflow from 256 on; np.hypot takes 10 times as long.
def _arctan(x: Any) -> Any:
    if _is_half(x):
        slope = 1 / np.hypot(1, x)
        return slope * slope
    return over(1, 1 + x * x) if is_complex(x) else 1 / (1 + x * x)


elementwise(np.arctan, _arctan)


# y = atan2(x1, x2). The quotient of x by r, then by r, keeps r**2 from overflowing.
def _over_square(x: Any, x1: Any, x2: Any) -> Any:
    r = np.hypot(x1, x2)
    return over(over(x, r), r)


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


# y = sin(t)/t with t = pi*x, so dy/dt = (cos t - y)/t. That cancels near 0, where the
# series -t/3 + t**3/30 - ... (coefficients (-1)**k 2k/(2k+1)!) takes over.
_SINC_COEFFICIENTS = [-1 / 3]
for _k in range(2, 13):
    _SINC_COEFFICIENTS.append(
        -_SINC_COEFFICIENTS[-1] * _k / (_k - 1) / (2 * _k * (2 * _k + 1))
    )


def polynomial(coefficients: list[float], x: Any) -> Any:
    """c[0] + c[1]*x + c[2]*x**2 + ...; in float16 as far as it knows the numbers."""
    if _is_half(x):
        coefficients = [c for c in coefficients if abs(c) > 6e-8]
    total: Any = 0
    for coefficient in reversed(coefficients):
        total = total * x + coefficient
    return total


def _sinc(y: Any, x: Any) -> Any:
    t = pi * x
    far = np.abs(t) >= 2
    ok = far & np.isfinite(t) if not is_complex(t) else far
    near, away = guard(t, ~far), np.where(ok, t, 2)
    series = near * polynomial(_SINC_COEFFICIENTS, near * near)
    direct = (np.cos(away) - guard(y, ok)) / away
    return pi * np.where(far, guard(direct, ok), series)


elementwise(np.sinc, _sinc, note="0 where pi*x overflows")

# Hyperbolic functions


def sech2(x: Any) -> Any:
    """1 / cosh(x)**2."""
    return _sech2(x) if type(x) is np.ndarray else _sech2_of_any(x)


def _sech2(x: Any) -> Any:
    if is_complex(x):  # cosh overflows to values whose inverse is NaN
        y = np.tanh(x)
        return 1 - y * y
    y = np.cosh(x)
    if type(y) is not np.ndarray:
        return np.square(np.reciprocal(y))
    np.reciprocal(y, out=y)  # plain arrays: no more memory than the result's
    return np.square(y, out=y)


_sech2_of_any = primitive(_sech2)
elementwise(_sech2_of_any, lambda y, x: -2 * (y * np.tanh(x)))

elementwise(np.sinh, lambda x: finite(np.cosh(x)), note=_OVERFLOW)
elementwise(np.cosh, lambda x: finite(np.sinh(x)), note=_OVERFLOW)
elementwise(np.tanh, sech2)


def _arcsinh(x: Any) -> Any:
    if is_complex(x):
        return over(1, np.sqrt(1 + 1j * x) * np.sqrt(1 - 1j * x))
    return 1 / (np.hypot(1, x) if _is_half(x) else np.sqrt(1 + x * x))


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

# Absolute values


def sign_of(x: Any) -> Any:
    """x/|x|, conjugated if complex: the partial derivative of |x|; 0 at 0."""
    return over(np.conj(x), np.abs(x)) if is_complex(x) else np.sign(x)


elementwise(np.absolute, sign_of, kinks=(0.0,), note="0 at 0")
elementwise(np.fabs, lambda x: np.sign(x), kinks=(0.0,), note="0 at 0")

# Choices. Ties share the cotangent, so that all shares sum to dy.


def chosen(taken: Any, tied: Any, dtype: Any) -> Any:
    """1 where taken, 1/2 where tied, else 0.

    Ties are rare: to look for them first takes 5 ms instead of 23 with 4e6 elements.
    """
    if type(taken) is np.ndarray:
        return _chosen(taken, tied, dtype)
    return _chosen_of_any(taken, tied, dtype)


def _chosen(taken: Any, tied: Any, dtype: Any) -> Any:
    if np.count_nonzero(tied):
        return np.where(tied, 0.5, taken).astype(dtype)
    return taken.astype(dtype)


_chosen_of_any = primitive(_chosen)
nondifferentiable("it is constant between the points where it jumps", _chosen_of_any)

elementwise(
    np.maximum,
    lambda x1, x2: chosen(x1 > x2, x1 == x2, x1.dtype),
    lambda x1, x2: chosen(x2 > x1, x1 == x2, x2.dtype),
    note="1/2 to each where the arguments tie",
)
elementwise(
    np.minimum,
    lambda x1, x2: chosen(x1 < x2, x1 == x2, x1.dtype),
    lambda x1, x2: chosen(x2 < x1, x1 == x2, x2.dtype),
    note="1/2 to each where the arguments tie",
)
for _choice in (np.fmax, np.fmin):  # of a number and NaN they take the number
    elementwise(
        _choice,
        lambda y, x1, x2: chosen(x1 == y, x1 == x2, x1.dtype),
        lambda y, x1, x2: chosen(x2 == y, x1 == x2, x2.dtype),
        note="1/2 to each where the arguments tie",
    )
