"""The gamma function and its relatives."""

from __future__ import annotations

from math import inf, pi
from typing import Any

import numpy as np
import scipy.special as sp
from scipy.special import _ufuncs

from ...core.errors import UnsupportedOperationError
from ...core.rule import differentiable
from ..arithmetic import finite, guard, over, slope
from ..elementwise import is_complex
from .common import precise, refused, special

_AT_POLES = "0 at the poles 0, -1, -2, ..."


def regular(x: Any) -> Any:
    """Where x is no pole of the gamma function."""
    if is_complex(x):
        return (np.imag(x) != 0) | regular(np.real(x))
    return (x > 0) | (x != np.floor(x))


def digamma(x: Any) -> Any:
    return finite(guard(sp.psi(x), regular(x)))


# psi'(x) = zeta(2, x); on the left by reflection, psi'(x) = (pi/sin(pi x))**2 -
# psi'(1 - x), where zeta would sum over all poles. sin sees x less a whole number.
def trigamma(x: Any) -> Any:
    if is_complex(x):
        raise UnsupportedOperationError(
            "scipy.special.psi of a complex argument has no gradient rule: SciPy has "
            "no complex polygamma function."
        )
    left, ok = x < 0.5, regular(x)
    sine = np.sin(pi * (x - np.rint(x)))
    reflected = over(pi, sine)
    zeta = sp.zeta(2, np.where(left, 1 - x, x))
    return guard(np.where(left, reflected * reflected - zeta, zeta), ok)


def _loggamma(x: Any) -> Any:
    return digamma(x) if is_complex(x) else guard(sp.psi(x), x > 0)


special(sp.psi, trigamma, note=_AT_POLES)
special(sp.gammaln, lambda x: digamma(x), note=_AT_POLES)
special(sp.loggamma, _loggamma, domain=(0, inf), note="0 from 0 down, if real")
special(
    sp.gamma,
    lambda y, x: slope(precise(y, sp.gamma, x), regular, x) * digamma(x),
    note=_AT_POLES,
)


# y = 1/gamma(x). dy/dx = -y*psi(x), which on the left is 0 times infinity at the poles;
# there y = gamma(z)*sin(pi*x)/pi with z = 1 - x > 0.
def _rgamma(y: Any, x: Any) -> Any:
    if is_complex(x):
        return -y * digamma(x)
    left = x < 0.5
    z = np.where(left, 1 - x, 1)
    angle = pi * (x - 2 * np.rint(0.5 * x))
    wave = np.cos(angle) - sp.psi(z) * np.sin(angle) / pi
    reflected = guard(sp.gamma(z), z < _LARGEST[x.dtype.char]) * wave
    return np.where(left, reflected, -guard(y, ~left) * sp.psi(np.where(left, 1, x)))


_LARGEST = {"e": 35.0, "f": 35.0, "d": 171.0, "g": 171.0}  # whose gamma is finite

special(
    sp.rgamma,
    lambda y, x: _rgamma(precise(y, sp.rgamma, x), x),
    note="0 where gamma(1 - x) overflows",
)


# zeta(s, q) = the sum of 1/(q + k)**s. For q < 0 it exists if s is whole.
def _zeta_dq(x1: Any, x2: Any) -> Any:
    ok = (x2 > 0) | ((x2 != np.floor(x2)) & (x1 == np.floor(x1)))
    return -x1 * guard(sp.zeta(x1 + 1, x2), ok)


special(
    _ufuncs._zeta,
    refused(sp.zeta, "x"),
    _zeta_dq,
    domain=(0, inf),
    note="0 at the poles 0, -1, -2, ... of q",
)


def _polygamma_dx(n: Any, x: Any) -> Any:
    return guard(sp.polygamma(n + 1, x), regular(x))


differentiable(
    sp.polygamma,
    lambda dy, y, n, x: dy * _polygamma_dx(n, x),
    lambda dx, y, n, x: dx * _polygamma_dx(n, x),
    saves="x",
    arrays=slice(1, 2),
    note=_AT_POLES,
)


def _multigammaln_da(a: Any, d: Any) -> Any:
    return sum((sp.psi(a - 0.5 * j) for j in range(int(d))), start=0.0)


differentiable(
    sp.multigammaln,  # pyright: ignore[reportAttributeAccessIssue]
    lambda dy, y, a, d: dy * _multigammaln_da(a, d),
    lambda dx, y, a, d: dx * _multigammaln_da(a, d),
    saves="a",
)


# psi(a) - psi(a + b) cancels if b/a is small. For positive a and b it is taken apart,
# by psi(a) = psi(a + 1) - 1/a and, from 12 on, by the asymptotic series psi(a) ~ log(a)
# - u/2 - sum c(k) u**(2k), u = 1/a, c(k) = B(2k)/2k, into differences that do not.
_PSI_COEFFICIENTS = [1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12]


def digamma_difference(a: Any, b: Any) -> Any:
    ok = (a > 0) & (b > 0)
    direct = digamma(a) - digamma(a + b)
    return np.where(ok, _difference(np.where(ok, a, 1), np.where(ok, b, 1)), direct)


def _difference(a: Any, b: Any) -> Any:
    total = 0
    for _ in range(12):
        total = total - b / (a + b) / a
        a = a + 1
    u, v = 1 / a, 1 / (a + b)
    step = b * u * v  # u - v
    return total - np.log1p(b * u) - step / 2 - step * (u + v) * _slope(u * u, v * v)


def _slope(s: Any, t: Any) -> Any:
    """(g(s) - g(t))/(s - t) for the polynomial g(s) = c(1) s + c(2) s**2 + ..."""
    slope, value = 0, _PSI_COEFFICIENTS[-1]
    for coefficient in [*_PSI_COEFFICIENTS[-2::-1], 0]:
        slope = slope * s + value
        value = value * t + coefficient
    return slope


special(
    sp.betaln,
    lambda x1, x2: digamma_difference(x1, x2),
    lambda x1, x2: digamma_difference(x2, x1),
    domain=(0, inf),
    note="0 at the poles, also of x1 + x2",
)


def _beta_dx1(y: Any, x1: Any, x2: Any) -> Any:
    return finite(precise(y, sp.beta, x1, x2)) * digamma_difference(x1, x2)


special(
    sp.beta,
    lambda y, x1, x2: _beta_dx1(y, x1, x2),
    lambda y, x1, x2: _beta_dx1(y, x2, x1),
    domain=(0, inf),
    note="0 at the poles, also of x1 + x2",
)

# Incomplete functions: distributions of x, whose derivative is the density. At an end
# of their interval it may be infinite, which counts as 0.


def _exp_where(exponent: Any, ok: Any) -> Any:
    return guard(np.exp(guard(exponent, ok)), ok)


def gamma_density(a: Any, x: Any) -> Any:
    """x**(a - 1) * exp(-x) / gamma(a)."""
    ok = (a > 0) & ((x > 0) | ((x == 0) & (a >= 1)))
    return _exp_where(sp.xlogy(a - 1, x) - x - sp.gammaln(a), ok)


def beta_density(a: Any, b: Any, x: Any) -> Any:
    """x**(a - 1) * (1 - x)**(b - 1) / beta(a, b)."""
    left = (x > 0) | ((x == 0) & (a >= 1))
    right = (x < 1) | ((x == 1) & (b >= 1))
    exponent = sp.xlogy(a - 1, x) + sp.xlog1py(b - 1, -x) - sp.betaln(a, b)
    return _exp_where(exponent, (a > 0) & (b > 0) & left & right)


special(
    sp.gammainc,
    refused(sp.gammainc, "a"),
    lambda x1, x2: gamma_density(x1, x2),
    domain=(0, inf),
)
special(
    sp.gammaincc,
    refused(sp.gammaincc, "a"),
    lambda x1, x2: -gamma_density(x1, x2),
    domain=(0, inf),
)
special(
    sp.gammaincinv,
    refused(sp.gammaincinv, "a"),
    lambda x1, x2: over(1, finite(gamma_density(x1, sp.gammaincinv(x1, x2)))),
    domain=(0, 1),
)
special(
    sp.gammainccinv,
    refused(sp.gammainccinv, "a"),
    lambda x1, x2: -over(1, finite(gamma_density(x1, sp.gammainccinv(x1, x2)))),
    domain=(0, 1),
)


def _betaincinv(fn: Any, sign: int) -> Any:
    def partial(x1: Any, x2: Any, x3: Any) -> Any:
        return over(sign, finite(beta_density(x1, x2, fn(x1, x2, x3))))

    return partial


for _fn, _partial in (
    (sp.betainc, lambda x1, x2, x3: beta_density(x1, x2, x3)),
    (sp.betaincc, lambda x1, x2, x3: -beta_density(x1, x2, x3)),
    (sp.betaincinv, _betaincinv(sp.betaincinv, 1)),
    (sp.betainccinv, _betaincinv(sp.betainccinv, -1)),
):
    special(_fn, refused(_fn, "a"), refused(_fn, "b"), _partial, domain=(0, 1))
