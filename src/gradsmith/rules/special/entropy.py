"""Logistic functions, entropies, losses and power transforms."""

from __future__ import annotations

from math import factorial, inf, log, pi
from typing import Any

import numpy as np
import scipy.special as sp

from ..arithmetic import finite, guard, inside, over, power_dx1, power_dx2
from ..elementwise import is_complex, logistic
from ..trigonometry import polynomial, sech2
from .common import like, special

# Exponentials, logarithms and trigonometry that NumPy has too, or nearly

like(sp.exp2, np.exp2)
like(sp.expm1, np.expm1)
like(sp.log1p, np.log1p)
like(sp.cbrt, np.cbrt)
special(sp.exp10, lambda y: y * log(10))
special(sp.cosm1, lambda x: -np.sin(x))
special(sp.sindg, lambda x: pi / 180 * sp.cosdg(x))
special(sp.cosdg, lambda x: -pi / 180 * sp.sindg(x))


# Both are 0 at their poles. SciPy's cotdg has lost its digits near them.
def _slope_of_tangent(cosine: Any) -> Any:
    return pi / 180 * over(1, cosine * cosine)


special(sp.tandg, lambda x: _slope_of_tangent(sp.cosdg(x)))
special(sp.cotdg, lambda x: -_slope_of_tangent(sp.sindg(x)))
special(
    sp.powm1,
    lambda x1, x2: power_dx1(x1**x2, x1, x2),
    lambda x1, x2: power_dx2(x1**x2, x1, x2),
    note="0 where 0 meets a power below 1, and where there is no real power",
)

# Logistic functions

# y' = expit(x)*expit(-x) = (1/cosh(x/2)/2)**2
special(sp.expit, lambda x: 0.25 * sech2(0.5 * x))
special(sp.log_expit, lambda x: logistic(-x))


def _logit(x: Any) -> Any:
    product = x * (1 - x)
    return guard(1 / product, product > 0)


special(
    sp.logit,
    _logit,
    domain=(0, 1),
    note="0 at 0 and 1, where the slope is infinite, and beyond",
)


# y = (exp(x) - 1)/x, so dy/dx = (exp(x) - y)/x. Near 0 that cancels, and the series
# 1/2 + 2x/6 + 3x**2/24 + ... takes over; with x large exp(x) overflows before y does,
# but it is 1 + x*y.
_EXPREL_COEFFICIENTS = [(k + 1) / factorial(k + 2) for k in range(20)]


def exprel_dx(y: Any, x: Any) -> Any:
    near, left, ok = np.abs(x) < 1, x < 0, np.isfinite(y)
    series = polynomial(_EXPREL_COEFFICIENTS, guard(x, near))
    x, y = np.where(near, 1, x), guard(y, ok)
    below = (np.exp(guard(x, left)) - y) / x
    inverse = 1 / x
    above = guard(y * (1 - inverse) + inverse, ok)
    return np.where(near, series, np.where(left, below, above))


special(sp.exprel, lambda x: exprel_dx(sp.exprel(x), x))

# Entropies. At x1 = 0 their slope is infinite, which counts as 0.


def _log_of(x: Any, ok: Any) -> Any:
    return guard(np.log(x), ok)


def _xlog1py_dx1(x2: Any) -> Any:
    return guard(np.log1p(x2), inside(1 + x2))


def _xlog1py_dx2(x1: Any, x2: Any) -> Any:
    x2 = 1 + x2
    return guard(x1 / x2, inside(x2))


special(
    sp.xlogy,
    lambda x2: _log_of(x2, inside(x2)),
    lambda x1, x2: guard(x1 / x2, inside(x2)),
    domain=(0, inf),
    note="0 where x2 is not positive",
)
special(
    sp.xlog1py,
    _xlog1py_dx1,
    _xlog1py_dx2,
    domain=(-1, inf),
    note="0 where x2 is not above -1",
)
special(
    sp.entr,
    lambda x: guard(-1 - np.log(x), x > 0),
    domain=(0, inf),
    note="0 at 0, where the slope is infinite, and below",
)


# y = x1*log(x1/x2): the logarithm is taken from y, since the quotient may overflow.
def _rel_entr_dx1(x1: Any, x2: Any) -> Any:
    y = sp.rel_entr(x1, x2)
    return guard(y / x1 + 1, (x1 > 0) & (y < inf))


def _log_ratio(x1: Any, x2: Any) -> Any:
    return guard(sp.rel_entr(x1, x2) / x1, (x1 > 0) & (x2 > 0))


special(
    sp.rel_entr,
    _rel_entr_dx1,
    lambda x1, x2: guard(-x1 / x2, (x1 >= 0) & (x2 > 0)),
    domain=(0, inf),
    note="0 for x1 where x1 is 0, and where y is infinite",
)
special(
    sp.kl_div,
    _log_ratio,
    lambda x1, x2: guard((x2 - x1) / x2, (x1 >= 0) & (x2 > 0)),
    domain=(0, inf),
    note="0 for x1 where x1 is 0, and where y is infinite",
)

# Losses. huber: r**2/2 within delta, delta*(|r| - delta/2) beyond, where x1 is delta.

special(
    sp.huber,
    lambda x1, x2: guard(np.maximum(np.abs(x2) - x1, 0), x1 >= 0),
    lambda x1, x2: guard(np.sign(x2) * np.minimum(np.abs(x2), x1), x1 >= 0),
    domain=(0, inf),
    note="0 where delta is negative",
)


# y = delta*(h - delta) with h = hypot(delta, r); dy/ddelta = (h - delta)**2/h, in which
# h - delta = r**2/(h + delta) does not cancel.
def _pseudo_huber_dx1(x1: Any, x2: Any) -> Any:
    h = np.hypot(x1, x2)
    excess = x2 * over(x2, h + x1)
    return guard(excess * over(excess, h), x1 >= 0)


def _pseudo_huber_dx2(x1: Any, x2: Any) -> Any:
    return guard(x1 * over(x2, np.hypot(x1, x2)), x1 >= 0)


special(
    sp.pseudo_huber,
    _pseudo_huber_dx1,
    _pseudo_huber_dx2,
    domain=(0, inf),
    note="0 where delta is negative, and at (0, 0)",
)

# Power transforms. y = (x**p - 1)/p = l*exprel(p*l) with l = log(x); 1p: l = log1p(x)


def _by_power(logarithm: Any, p: Any) -> Any:
    """The derivative of l*exprel(p*l) with respect to p."""
    t = p * logarithm
    return logarithm * (logarithm * exprel_dx(sp.exprel(t), t))


def _boxcox_dx1(x1: Any, x2: Any) -> Any:
    return guard(x1 ** (x2 - 1), (x1 > 0) | ((x1 == 0) & (x2 >= 1)))


def _boxcox1p_dx1(x1: Any, x2: Any) -> Any:
    ok = x1 > -1
    return guard(np.exp((x2 - 1) * guard(np.log1p(x1), ok)), ok)


special(
    sp.boxcox,
    _boxcox_dx1,
    lambda x1, x2: _by_power(_log_of(x1, x1 > 0), x2),
    domain=(0, inf),
    note="0 where x1 is negative",
)
special(
    sp.boxcox1p,
    _boxcox1p_dx1,
    lambda x1, x2: _by_power(guard(np.log1p(x1), x1 > -1), x2),
    domain=(-1, inf),
    note="0 where x1 is -1 or less",
)


# Their inverses: z = exp(l) (less 1) with l = log1p(p*x)/p. dz/dx = 1/(dy/dz) is
# exp((1 - p)*l), and dz/dp = -(dy/dp)/(dy/dz). Where p*x is small, l is a series in it.
def _inverse_log(x1: Any, x2: Any) -> Any:
    t = x1 * x2
    near = np.abs(t) < 1e-5
    series = x1 * (1 - t * (1 / 2 - t / 3))
    return np.where(near, series, finite(np.log1p(t)) / np.where(near, 1, x2))


def _inverse_dx1(x1: Any, x2: Any) -> Any:
    ok = x1 * x2 > -1
    return guard(np.exp((1 - x2) * guard(_inverse_log(x1, x2), ok)), ok)


def _inverse_dx2(x1: Any, x2: Any) -> Any:
    slope = finite(_by_power(_inverse_log(x1, x2), x2))
    return -slope * finite(_inverse_dx1(x1, x2))


for _inverse in (sp.inv_boxcox, sp.inv_boxcox1p):
    special(_inverse, _inverse_dx1, _inverse_dx2, note="0 where x1*x2 is -1 or less")


# y = the integral of log(t)/(1 - t) from 1: with l = log(x), dy/dx = -1/exprel(l)
def _spence(x: Any) -> Any:
    if is_complex(x):
        return over(np.log(x), 1 - x)
    return guard(-1 / sp.exprel(_log_of(x, x > 0)), x > 0)


special(sp.spence, _spence, domain=(0, inf), note="0 from 0 down")
