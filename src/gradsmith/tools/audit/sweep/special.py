"""SciPy's special functions on power series; read once SciPy is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from .. import formulas as f
from ..arb import arb, ctx
from .functions import composed, log1p, primitive, row
from .huge import exp
from .series import SERIES, arb_series, constant, state

_FAR = 20


def _root_half() -> Any:
    return arb(0.5).sqrt()


# The normal distribution


def ndtr(u: Any) -> Any:
    return (-u * _root_half()).erfc() / 2


def density(u: Any) -> Any:
    return (-u * u / 2).exp() * (_root_half() / arb.const_sqrt_pi())


def kummer(u: Any) -> Any:
    """U(1/2, 1/2, u): its n-th coefficient is (-1)**n (1/2)_n/n! U(1/2+n, 1/2+n, u)."""
    coefficients, c, a = [], arb(1), arb(0.5)
    for k in range(state.terms):
        coefficients.append(c * u[0].hypgeom_u(a + k, a + k))
        c *= -(a + k) / (k + 1)
    return composed(coefficients, u)


def hazard(u: Any) -> Any:
    """The derivative of log_ndtr."""
    if u[0] < -_FAR:
        return arb(2).sqrt() / kummer(u * u / 2)
    return density(u) / ndtr(u)


def erfcx(u: Any) -> Any:
    if u[0] > _FAR:
        return kummer(u * u) / arb.const_sqrt_pi()
    return exp(u * u) * u.erfc()


def inverse(value: Any, slope: Any) -> Any:
    """A function whose derivative is that of its own value: a term more each time."""

    def call(u: Any) -> Any:
        y0, du = value(u[0]), u.derivative()
        y = constant(y0)
        for _ in range(state.terms - 1):
            y = (slope(y) * du).integral() + y0
        return y

    return call


def _half_root_pi() -> Any:
    return arb.const_sqrt_pi() / 2


row(sp.erf, lambda u: u.erf())
row(sp.erfc, lambda u: u.erfc())
row(sp.erfi, primitive(arb.erfi, lambda u: exp(u * u) * (1 / _half_root_pi())))
row(sp.erfcx, erfcx)
row(sp.ndtr, ndtr)
row(sp.log_ndtr, primitive(f.log_ndtr, hazard))
row(sp.erfinv, inverse(arb.erfinv, lambda y: _half_root_pi() * (y * y).exp()))
row(sp.erfcinv, inverse(arb.erfcinv, lambda y: -_half_root_pi() * (y * y).exp()))
row(sp.ndtri, inverse(f.ndtri, lambda y: 1 / density(y)))

# Logistic functions


def expit(u: Any) -> Any:
    e = exp(u) if u[0] < 0 else exp(-u)
    return e / (1 + e) if u[0] < 0 else 1 / (1 + e)


def _log_expit(x: Any) -> Any:
    return f.log_expit(x)


row(sp.expit, expit)
row(sp.log_expit, primitive(_log_expit, lambda u: expit(-u)))
row(sp.logit, primitive(lambda x: x.log() - (-x).log1p(), lambda u: 1 / (u * (1 - u))))

# Gamma functions


def digamma(u: Any) -> Any:
    """Left of 0 by reflection."""
    if not u[0] > 0:
        return digamma(1 - u) - (u * 1).cot_pi() * arb.pi()
    return composed(_slopes(u[0]), u)


def _slopes(x: Any) -> list[Any]:
    """The coefficients of digamma around a ball."""
    before, ctx.cap = ctx.cap, state.terms + 1
    try:
        y = arb_series([x, 1], prec=state.terms + 1).lgamma().derivative()
    finally:
        ctx.cap = before
    return [y[k] for k in range(state.terms)]


def gamma(u: Any) -> Any:
    return exp(u.lgamma()) if u[0] > 100 else u.gamma()


def gammaln(u: Any) -> Any:
    return u.lgamma() if u[0] > 0 else primitive(f.gammaln, digamma)(u)


row(sp.gamma, gamma)
row(sp.rgamma, lambda u: 1 / gamma(u) if u[0] > 100 else u.rgamma())
row(sp.gammaln, gammaln)
row(sp.digamma, digamma)

# Logarithms

for _name in ("cbrt", "exp2", "expm1", "log1p", "sinc"):
    SERIES[getattr(sp, _name)] = SERIES[getattr(np, _name)]
row(sp.xlogy, lambda u, v: u * v.log(), 2)
row(sp.xlog1py, lambda u, v: u * (log1p(v) if not isinstance(v, arb) else v.log1p()), 2)
row(sp.entr, lambda u: -u * u.log())
