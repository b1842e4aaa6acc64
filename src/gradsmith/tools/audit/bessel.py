"""True derivatives of SciPy's Bessel functions, integrals and distributions.

An order is a constant: it has no derivative here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp
from scipy.special import _ufuncs

from . import formulas as f
from .arb import arb, each
from .elementwise import row

# Any order: J and Y by half the difference of their neighbours, I by half the sum


def _neighbours(fn: Any, first: Any, second: Any) -> Any:
    """The partial derivative of fn(v, x) as half of a sum of both neighbours."""
    slope = each(lambda v, x: (first * fn(v - 1, x) + second * fn(v + 1, x)) / 2, 2)
    return lambda x1, x2: slope(x1, x2)


def _j(v: Any, x: Any) -> Any:
    return x.bessel_j(v)


def _y(v: Any, x: Any) -> Any:
    return x.bessel_y(v)


def _i(v: Any, x: Any) -> Any:
    return x.bessel_i(v)


def _k(v: Any, x: Any) -> Any:
    return x.bessel_k(v)


for _fn, _value, _first, _second in (
    (sp.jv, _j, 1, -1),
    (sp.yv, _y, 1, -1),
    (sp.yn, _y, 1, -1),
    (sp.iv, _i, 1, 1),
    (sp.kv, _k, -1, -1),
    (sp.kn, _k, -1, -1),
):
    row(_fn, each(_value, 2), None, _neighbours(_value, _first, _second))


def _of_order(rule: Any, n: int) -> Any:
    return each(lambda x: rule(arb(n), x))


def _slope_of_order(rule: Any, n: int, first: int, second: int) -> Any:
    def slope(x: Any) -> Any:
        return (first * rule(arb(n - 1), x) + second * rule(arb(n + 1), x)) / 2

    return lambda x: each(slope)(x)


for _n, _fns in ((0, (sp.j0, sp.y0, sp.i0, sp.k0)), (1, (sp.j1, sp.y1, sp.i1, sp.k1))):
    for _fn, _value, _first, _second in zip(
        _fns, (_j, _y, _i, _k), (1, 1, 1, -1), (-1, -1, 1, -1), strict=True
    ):
        row(_fn, _of_order(_value, _n), _slope_of_order(_value, _n, _first, _second))
row(np.i0, _of_order(_i, 0), _slope_of_order(_i, 0, 1, 1))


# The same times exp(-|x|) or, for K, exp(x)


def _scaled_i(v: Any, x: Any) -> Any:
    return f.exp(-abs(x)) * x.bessel_i(v)


def _scaled_k(v: Any, x: Any) -> Any:
    return f.exp(x) * x.bessel_k(v)


def _scaled_i_slope(v: Any, x: Any) -> Any:
    mean = (_scaled_i(v - 1, x) + _scaled_i(v + 1, x)) / 2
    return mean - f.sign(x) * _scaled_i(v, x)


def _scaled_k_slope(v: Any, x: Any) -> Any:
    return _scaled_k(v, x) - (_scaled_k(v - 1, x) + _scaled_k(v + 1, x)) / 2


def _plain(slope: Any) -> Any:
    return lambda x: slope(x)


for _n, _fn in enumerate((sp.i0e, sp.i1e)):
    row(_fn, _of_order(_scaled_i, _n), _plain(_of_order(_scaled_i_slope, _n)))
for _n, _fn in enumerate((sp.k0e, sp.k1e)):
    row(_fn, _of_order(_scaled_k, _n), _plain(_of_order(_scaled_k_slope, _n)))
row(
    sp.ive,
    each(_scaled_i, 2),
    None,
    lambda x1, x2: each(_scaled_i_slope, 2)(x1, x2),
)
row(
    sp.kve,
    each(_scaled_k, 2),
    None,
    lambda x1, x2: each(_scaled_k_slope, 2)(x1, x2),
)

# Integrals of elementary functions

_exp, _digamma = each(f.exp), each(arb.digamma)
row(sp.expi, each(arb.ei), lambda x: _exp(x) / x)
row(sp.exp1, each(lambda x: x.expint(arb(1))), lambda x: -_exp(-x) / x)
row(sp.loggamma, each(arb.lgamma), lambda x: _digamma(x))


def _spence_slope(x: Any) -> Any:
    return -f.ONE if x == 1 else x.log() / (1 - x)


row(
    sp.spence,
    each(lambda x: (1 - x).polylog(arb(2))),
    lambda x: each(_spence_slope)(x),
)
row(sp.wrightomega, each(lambda x: f.exp(x).lambertw()), lambda y: y / (1 + y))
row(
    sp.ndtri_exp,
    each(lambda x: f.ndtri(f.exp(x))),
    lambda y: 1 / each(f.hazard)(y),
)

# Distributions


def _gamma_density(a: Any, x: Any) -> Any:
    return x ** (a - 1) * f.exp(-x) * a.rgamma()


def _beta_density(a: Any, b: Any, x: Any) -> Any:
    scale = (a + b).gamma() * a.rgamma() * b.rgamma()
    return x ** (a - 1) * (1 - x) ** (b - 1) * scale


row(
    sp.gammainc,
    each(lambda a, x: x.gamma_lower(a, regularized=1), 2),
    None,
    lambda x1, x2: each(_gamma_density, 2)(x1, x2),
)
row(
    sp.gammaincc,
    each(lambda a, x: x.gamma_upper(a, regularized=1), 2),
    None,
    lambda x1, x2: -each(_gamma_density, 2)(x1, x2),
)
row(
    sp.betainc,
    each(lambda a, b, x: x.beta_lower(a, b, regularized=1), 3),
    None,
    None,
    lambda x1, x2, x3: each(_beta_density, 3)(x1, x2, x3),
)
row(
    sp.betaincc,
    each(lambda a, b, x: 1 - x.beta_lower(a, b, regularized=1), 3),
    None,
    None,
    lambda x1, x2, x3: -each(_beta_density, 3)(x1, x2, x3),
)

# zeta(s, q), and hypergeometric functions of their last argument

row(
    _ufuncs._zeta,
    each(lambda s, q: s.zeta(q), 2),
    None,
    lambda x1, x2: -x1 * each(lambda s, q: (s + 1).zeta(q), 2)(x1, x2),
)
row(
    sp.hyp0f1,
    each(lambda v, x: x.hypgeom_0f1(v), 2),
    None,
    lambda x1, x2: each(lambda v, x: x.hypgeom_0f1(v + 1) / v, 2)(x1, x2),
)
row(
    sp.hyp1f1,
    each(lambda a, b, x: x.hypgeom_1f1(a, b), 3),
    None,
    None,
    lambda x1, x2, x3: each(lambda a, b, x: a / b * x.hypgeom_1f1(a + 1, b + 1), 3)(
        x1, x2, x3
    ),
)
