"""Functions of one series, or two, that Arb does not have, or not on wide intervals.

A function g of a series u is g(u0) + the integral of g'(u) u'. The values at u0 are the
formulas of balls, so that they lose no digits.
"""

from __future__ import annotations

from typing import Any

from . import formulas as f
from .arb import arb, arb_series, ctx
from .series import Huge, constant, exp, state


def by_slope(value: Any, slope: Any) -> Any:
    """A function by its value on balls and its derivative, a function of x."""

    def call(u: Any) -> Any:
        return (slope(u) * u.derivative()).integral() + value(u[0])

    return call


def by_own_value(value: Any, slope: Any) -> Any:
    """A function whose derivative is one of its value y: a term more each time."""

    def call(u: Any) -> Any:
        y0, du = value(u[0]), u.derivative()
        y = constant(y0)
        for _ in range(state.terms - 1):
            y = (slope(y) * du).integral() + y0
        return y

    return call


def composed(coefficients: Any, u: Any) -> Any:
    """A function of which the coefficients around u0 are known."""
    w = u.derivative().integral()  # u - u0, and exactly 0 there
    *rest, y = coefficients
    for c in reversed(rest):
        y = y * w + c
    return y


def _with_first(y: Any, y0: Any) -> Any:
    return y.derivative().integral() + y0


def power(u: Any, p: Any) -> Any:
    if isinstance(p, arb) and p.is_integer() and abs(p) < 64:
        return u ** int(p.unique_fmpz())
    if isinstance(p, arb) and p == 0.5:
        return u.sqrt()
    return exp(p * u.log() if isinstance(u, arb) else u.log() * p)


# Exponentials and logarithms


def expm1(u: Any) -> Any:
    e = exp(u)
    return e - 1 if isinstance(e, Huge) else _with_first(e, u[0].expm1())


def log1p(u: Any) -> Any:
    return (u + 1).log() if isinstance(u, Huge) else _log1p(u)


_log1p = by_slope(arb.log1p, lambda u: 1 / (1 + u))


def cbrt(u: Any) -> Any:
    if u[0] < 0:
        return -cbrt(-u)
    return _with_first((u.log() / 3).exp(), f.cbrt(u[0]))


def logaddexp(u: Any, v: Any) -> Any:
    w = v - u
    if w[0] > 0:
        u, w = v, -w
    return u + log1p(exp(w))


def xlog1py(u: Any, v: Any) -> Any:
    return u * (v.log1p() if isinstance(v, arb) else log1p(v))


# Trigonometry


def sinc(u: Any) -> Any:
    """Near 0 it is 0F1(3/2; w) with w = -(pi u)**2/4, whose derivatives are such."""
    if not abs(u[0]) < 1:
        return u.sin_pi() / (u * arb.pi())
    w = -(u * arb.pi()) * (u * arb.pi()) / 4
    coefficients, c, b = [], arb(1), arb(1.5)
    for k in range(state.terms):
        coefficients.append(c * w[0].hypgeom_0f1(b + k))
        c /= (b + k) * (k + 1)
    return composed(coefficients, w)


def sech2(u: Any) -> Any:
    """By what dies away: 4 w/(1 + w)**2 with w = exp(-2|u|)."""
    w = exp(-2 * u if u[0] > 0 else 2 * u)
    w = exp(2 * u) if isinstance(w, Huge) else w
    return 4 * w / ((1 + w) * (1 + w))


def sinh(u: Any) -> Any:
    y = (exp(u) - exp(-u)) / 2
    return y if isinstance(y, Huge) else _with_first(y, u[0].sinh())


# The normal and the logistic distribution

_FAR = 20


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
    return f.density(u) / f.ndtr(u)


def erfcx(u: Any) -> Any:
    if u[0] > _FAR:
        return kummer(u * u) / arb.const_sqrt_pi()
    return exp(u * u) * u.erfc()


def expit(u: Any) -> Any:
    e = exp(u) if u[0] < 0 else exp(-u)
    return e / (1 + e) if u[0] < 0 else 1 / (1 + e)


# Gamma functions


def digamma(u: Any) -> Any:
    """Left of 0 by reflection."""
    if not u[0] > 0:
        return digamma(1 - u) - (u * 1).cot_pi() * arb.pi()
    before, ctx.cap = ctx.cap, state.terms + 1
    try:
        y = arb_series([u[0], 1], prec=state.terms + 1).lgamma().derivative()
    finally:
        ctx.cap = before
    return composed([y[k] for k in range(state.terms)], u)


def gamma(u: Any) -> Any:
    return exp(u.lgamma()) if u[0] > 100 else u.gamma()


def rgamma(u: Any) -> Any:
    return 1 / gamma(u) if u[0] > 100 else u.rgamma()


def gammaln(u: Any) -> Any:
    return u.lgamma() if u[0] > 0 else by_slope(f.gammaln, digamma)(u)
