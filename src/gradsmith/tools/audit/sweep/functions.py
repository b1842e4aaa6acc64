"""NumPy's functions on power series.

A function g of a series u is g(u0) + the integral of g'(u) u', or what Arb has of its
own. The values at u0 are the oracle's formulas, so that they lose no digits.
"""

from __future__ import annotations

from importlib import import_module
from math import inf
from typing import Any

import numpy as np

from ....core.import_hooks import once_imported
from ....core.rule import find_rule
from .. import formulas as f
from ..arb import arb
from .huge import Huge, exp
from .series import SERIES, Series, balls, state, unknown, value_of


def row(fn: Any, value: Any, n: int = 1) -> None:
    """Declare a function of series by that of a single one."""
    SERIES[fn] = _caller(fn, np.frompyfunc(_safe(value), n, 1))


def _safe(value: Any) -> Any:
    def call(*args: Any) -> Any:
        try:
            return value(*args)
        except (ValueError, ZeroDivisionError, AttributeError, TypeError):
            return unknown()  # a division by an interval with 0, a Huge's own

    return call


def _caller(fn: Any, value: Any) -> Any:
    rule = find_rule(fn)
    low, high = getattr(rule, "domain", (-inf, inf))

    def call(*args: Any) -> Series:
        if abs(low) < inf or abs(high) < inf:
            x = balls(args[0])
            state.outside |= np.asarray((x < arb(low)) | (x > arb(high)), bool)
        return Series(value(*[value_of(x) for x in args]))

    return call


def primitive(value: Any, slope: Any) -> Any:
    """A function by its value on balls and its derivative on series."""

    def call(u: Any) -> Any:
        return (slope(u) * u.derivative()).integral() + value(u[0])

    return call


def composed(coefficients: Any, u: Any) -> Any:
    """A function of which the coefficients around u0 are known."""
    w = u.derivative().integral()  # u - u0, and exactly 0 there
    *rest, y = coefficients
    for c in reversed(rest):
        y = y * w + c
    return y


for _fn, _op in {
    np.add: lambda a, b: a + b,
    np.subtract: lambda a, b: a - b,
    np.multiply: lambda a, b: a * b,
    np.true_divide: lambda a, b: a / b,
}.items():
    row(_fn, _op, 2)
row(np.negative, lambda u: -u)
row(np.positive, lambda u: u)
row(np.reciprocal, lambda u: 1 / u)
row(np.square, lambda u: u * u)


def _power(x1: Any, x2: Any) -> Series:
    low, whole = balls(x1), np.frompyfunc(arb.is_integer, 1, 1)(balls(x2))
    state.outside |= np.asarray((low < arb(0)) & ~np.asarray(whole, bool), bool)
    return _POWER(x1, x2)


def power(u: Any, p: Any) -> Any:
    if isinstance(p, arb) and p.is_integer() and abs(p) < 64:
        return u ** int(p.unique_fmpz())
    if isinstance(p, arb) and p == 0.5:
        return u.sqrt()
    if isinstance(u, arb):
        return exp(p * u.log())
    return exp(u.log() * p)


for _fn in (np.power, np.float_power):
    row(_fn, power, 2)
_POWER = SERIES[np.power]
SERIES[np.power] = SERIES[np.float_power] = _power

# Exponentials and logarithms


def expm1(u: Any) -> Any:
    e = exp(u)
    return e - 1 if isinstance(e, Huge) else _with_first(e, u[0].expm1())


def _with_first(y: Any, y0: Any) -> Any:
    return y.derivative().integral() + y0


def log1p(u: Any) -> Any:
    return (u + 1).log() if isinstance(u, Huge) else _log1p(u)


_log1p = primitive(arb.log1p, lambda u: 1 / (1 + u))
row(np.exp, exp)
row(np.exp2, lambda u: exp(u * arb.const_log2()))
row(np.expm1, expm1)
row(np.log, lambda u: u.log())
row(np.log2, lambda u: u.log() / arb.const_log2())
row(np.log10, lambda u: u.log() / arb.const_log10())
row(np.log1p, log1p)
row(np.sqrt, lambda u: u.sqrt())


def cbrt(u: Any) -> Any:
    if u[0] < 0:
        return -cbrt(-u)
    return _with_first((u.log() / 3).exp(), f.cbrt(u[0]))


row(np.cbrt, cbrt)


def logaddexp(u: Any, v: Any) -> Any:
    w = v - u
    if w[0] > 0:
        u, w = v, -w
    return u + log1p(exp(w))


row(np.logaddexp, logaddexp, 2)
row(np.hypot, lambda u, v: (u * u + v * v).sqrt(), 2)

# Trigonometry

row(np.sin, lambda u: u.sin())
row(np.cos, lambda u: u.cos())
row(np.tan, lambda u: u.tan())
row(np.arcsin, primitive(arb.asin, lambda u: ((1 - u) * (1 + u)).rsqrt()))
row(np.arccos, primitive(arb.acos, lambda u: -((1 - u) * (1 + u)).rsqrt()))
row(np.arctan, lambda u: u.atan())
for _fn in (np.deg2rad, np.radians):
    row(_fn, lambda u: u * (arb.pi() / 180))
for _fn in (np.rad2deg, np.degrees):
    row(_fn, lambda u: u * (180 / arb.pi()))


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


row(np.sinc, sinc)

# Hyperbolic functions


def _sech2(u: Any) -> Any:
    """By what dies away: 4 w/(1 + w)**2 with w = exp(-2|u|)."""
    w = exp(-2 * u if u[0] > 0 else 2 * u)
    w = exp(2 * u) if isinstance(w, Huge) else w
    return 4 * w / ((1 + w) * (1 + w))


def sinh(u: Any) -> Any:
    y = (exp(u) - exp(-u)) / 2
    return y if isinstance(y, Huge) else _with_first(y, u[0].sinh())


row(np.sinh, sinh)
row(np.cosh, lambda u: (exp(u) + exp(-u)) / 2)
row(np.tanh, primitive(arb.tanh, _sech2))
row(np.arcsinh, primitive(arb.asinh, lambda u: (1 + u * u).rsqrt()))
row(np.arccosh, primitive(arb.acosh, lambda u: ((u - 1) * (u + 1)).rsqrt()))
row(np.arctanh, primitive(arb.atanh, lambda u: 1 / ((1 - u) * (1 + u))))


def _read_special(_: Any) -> None:
    import_module(f"{__package__}.special")


once_imported("scipy.special", _read_special)
