"""The error function and the normal distribution."""

from __future__ import annotations

from math import inf, pi, sqrt
from typing import Any

import numpy as np
import scipy.special as sp

from ...core.rule import elementwise, primitive
from ..arithmetic import finite, guard, over
from ..elementwise import is_complex
from ..trigonometry import polynomial
from .common import special


@primitive
def bell(x: Any) -> Any:
    """The derivative of erf."""
    return 2 / sqrt(pi) * np.exp(-(x * x))


@primitive
def density(x: Any) -> Any:
    """The derivative of ndtr: the density of the normal distribution."""
    return 1 / sqrt(2 * pi) * np.exp(-0.5 * (x * x))


elementwise(bell, lambda y, x: -2 * (x * y))
elementwise(density, lambda y, x: -(x * y))

special(sp.erf, lambda x: bell(x))
special(sp.erfc, lambda x: -bell(x))
special(sp.erfi, lambda x: 2 / sqrt(pi) * np.exp(x * x))
special(sp.ndtr, lambda x: density(x))

# erfcx' = 2x*y - 2/sqrt(pi) and dawsn' = 1 - 2x*y cancel for large x. There they are
# given by the derivatives of the asymptotic series
#   sqrt(pi)*erfcx(x) ~ sum (-1)**k c(k) x**(-2k-1),   c(k) = (2k-1)!!/2**k,
# and 2*dawsn(x) ~ the same with plus signs only. From 10 on 16 terms are exact.
_ODD = [1.0]  # (2k+1)!!/2**k
for _k in range(1, 16):
    _ODD.append(_ODD[-1] * (2 * _k + 1) / 2)
_ALTERNATING = [(-1) ** k * c for k, c in enumerate(_ODD)]


def _tail(coefficients: list[float], x: Any) -> Any:
    inverse = 1 / x
    square = inverse * inverse
    return -square * polynomial(coefficients, square)


def erfcx_dx(y: Any, x: Any) -> Any:
    ok = np.isfinite(y)
    direct = guard(2 * (x * guard(y, ok)) - 2 / sqrt(pi), ok)
    if is_complex(x):
        return direct
    far = x > 10
    tail = 1 / sqrt(pi) * _tail(_ALTERNATING, np.where(far, x, 10))
    return np.where(far, tail, direct)


def _dawsn(y: Any, x: Any) -> Any:
    direct = 1 - 2 * (x * y)
    if is_complex(x):
        return direct
    far = np.abs(x) > 10
    return np.where(far, 0.5 * _tail(_ODD, np.where(far, x, 10)), direct)


special(sp.erfcx, lambda x: erfcx_dx(sp.erfcx(x), x))
special(sp.dawsn, lambda x: _dawsn(sp.dawsn(x), x))
special(sp.wofz, lambda y, x: 2j / sqrt(pi) - 2 * (x * y))


# The inverse functions: 1/f'(y), which is infinite at the ends, where y is. It
# magnifies the rounding of y by y**2, so y is computed anew.
def _inverse(y: Any, slope: Any) -> Any:
    ok = np.abs(y) < inf
    return guard(slope(guard(y, ok)), ok)


special(
    sp.erfinv,
    lambda x: _inverse(sp.erfinv(x), lambda y: sqrt(pi) / 2 * np.exp(y * y)),
    domain=(-1, 1),
    note="0 at -1 and 1, where the slope is infinite, and beyond",
)
special(
    sp.erfcinv,
    lambda x: _inverse(sp.erfcinv(x), lambda y: -sqrt(pi) / 2 * np.exp(y * y)),
    domain=(0, 2),
    note="0 at 0 and 2, where the slope is infinite, and beyond",
)
special(
    sp.ndtri,
    lambda x: _inverse(sp.ndtri(x), lambda y: sqrt(2 * pi) * np.exp(0.5 * (y * y))),
    domain=(0, 1),
    note="0 at 0 and 1, where the slope is infinite, and beyond",
)


@primitive
def hazard(x: Any) -> Any:
    """density(x) / ndtr(x), the derivative of log_ndtr, without their underflow."""
    return sqrt(2 / pi) / sp.erfcx(-sqrt(0.5) * x)


# y = density/ndtr, hence dy/dx = -y*(x + y). On the left that sum cancels; with
# t = -x/sqrt(2) it is -erfcx'(t)/erfcx(t)/sqrt(2).
def _hazard(y: Any, x: Any) -> Any:
    t = np.maximum(-sqrt(0.5) * x, 0)
    scaled = sp.erfcx(t)
    left = -sqrt(0.5) * erfcx_dx(scaled, t) / scaled
    return -y * np.where(x < 0, left, x + y)


elementwise(hazard, _hazard)
special(sp.log_ndtr, lambda x: density(x) / sp.ndtr(x) if is_complex(x) else hazard(x))
special(
    sp.ndtri_exp,
    lambda x: _inverse(sp.ndtri_exp(x), lambda y: over(1, hazard(y))),
    domain=(-inf, 0),
    note="0 at 0, where the slope is infinite, and beyond",
)


# y = the integral of exp(-x1**2 (1 + t**2)/2)/(1 + t**2)/(2 pi) over t from 0 to x2
def _owens_dx2(x1: Any, x2: Any) -> Any:
    return density(x1) * density(finite(x1 * x2)) / (1 + x2 * x2)


special(
    sp.owens_t,
    lambda x1, x2: -0.5 * density(x1) * sp.erf(sqrt(0.5) * (x1 * x2)),
    _owens_dx2,
)
