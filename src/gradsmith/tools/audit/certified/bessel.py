"""The rows of SciPy's Bessel functions, integrals and distributions.

An order is a constant: it has no derivative here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp
from scipy.special import _ufuncs

from . import formulas as f
from .arb import arb, each
from .elementwise import lifted, row

# Bessel functions J, Y, I and K of an order v, and I exp(-|x|) and K exp(x). J and Y
# have half the difference of their neighbours as derivative, I half their sum.


def _j(v: Any, x: Any) -> Any:
    return x.bessel_j(v)


def _y(v: Any, x: Any) -> Any:
    return x.bessel_y(v)


def _i(v: Any, x: Any) -> Any:
    return x.bessel_i(v)


def _k(v: Any, x: Any) -> Any:
    return x.bessel_k(v)


def _scaled_i(v: Any, x: Any) -> Any:
    return f.exp(-abs(x)) * x.bessel_i(v)


def _scaled_k(v: Any, x: Any) -> Any:
    return f.exp(x) * x.bessel_k(v)


def _neighbours(fn: Any, first: int, second: int) -> Any:
    return lambda v, x: (first * fn(v - 1, x) + second * fn(v + 1, x)) / 2


def _scaled_i_slope(v: Any, x: Any) -> Any:
    return _neighbours(_scaled_i, 1, 1)(v, x) - f.sign(x) * _scaled_i(v, x)


def _scaled_k_slope(v: Any, x: Any) -> Any:
    return _scaled_k(v, x) - _neighbours(_scaled_k, 1, 1)(v, x)


def _family(
    value: Callable[..., Any], slope: Callable[..., Any], any_order: Any, *fixed: Any
) -> None:
    """Rows of functions of (v, x), and of x for v = 0, 1, ..."""
    for fn in any_order:
        row(fn, value, None, lifted(lambda x1, x2: slope(x1, x2)))
    for n, fn in enumerate(fixed):
        order = arb(n)
        row(fn, lambda x, v=order: value(v, x), each(lambda x, v=order: slope(v, x)))


_family(_j, _neighbours(_j, 1, -1), (sp.jv,), sp.j0, sp.j1)
_family(_y, _neighbours(_y, 1, -1), (sp.yv, sp.yn), sp.y0, sp.y1)
_family(_i, _neighbours(_i, 1, 1), (sp.iv,), sp.i0, sp.i1)
_family(_i, _neighbours(_i, 1, 1), (), np.i0)
_family(_k, _neighbours(_k, -1, -1), (sp.kv, sp.kn), sp.k0, sp.k1)
_family(_scaled_i, _scaled_i_slope, (sp.ive,), sp.i0e, sp.i1e)
_family(_scaled_k, _scaled_k_slope, (sp.kve,), sp.k0e, sp.k1e)

# Integrals of elementary functions

row(sp.expi, arb.ei, lifted(lambda x: x.exp() / x))
row(sp.exp1, lambda x: x.expint(arb(1)), lifted(lambda x: -(-x).exp() / x))
row(
    sp.spence,
    lambda x: (1 - x).polylog(arb(2)),
    lifted(lambda x: -f.ONE if x == 1 else x.log() / (1 - x)),
)
row(sp.wrightomega, lambda x: f.exp(x).lambertw(), lambda y: y / (1 + y))

# Distributions


def _gamma_density(x1: Any, x2: Any) -> Any:
    return x2 ** (x1 - 1) * f.exp(-x2) * x1.rgamma()


def _beta_density(x1: Any, x2: Any, x3: Any) -> Any:
    scale = (x1 + x2).gamma() * x1.rgamma() * x2.rgamma()
    return x3 ** (x1 - 1) * (1 - x3) ** (x2 - 1) * scale


row(
    sp.gammainc,
    lambda a, x: x.gamma_lower(a, regularized=1),
    None,
    lifted(_gamma_density),
)
row(
    sp.gammaincc,
    lambda a, x: x.gamma_upper(a, regularized=1),
    None,
    lifted(lambda x1, x2: -_gamma_density(x1, x2)),
)
row(
    sp.betainc,
    lambda a, b, x: x.beta_lower(a, b, regularized=1),
    None,
    None,
    lifted(_beta_density),
)
row(
    sp.betaincc,
    lambda a, b, x: 1 - x.beta_lower(a, b, regularized=1),
    None,
    None,
    lifted(lambda x1, x2, x3: -_beta_density(x1, x2, x3)),
)

# zeta(s, q), and hypergeometric functions of their last argument

row(
    _ufuncs._zeta,
    lambda s, q: s.zeta(q),
    None,
    lifted(lambda x1, x2: -x1 * (x1 + 1).zeta(x2)),
)
row(
    sp.hyp0f1,
    lambda v, x: x.hypgeom_0f1(v),
    None,
    lifted(lambda x1, x2: x2.hypgeom_0f1(x1 + 1) / x1),
)
row(
    sp.hyp1f1,
    lambda a, b, x: x.hypgeom_1f1(a, b),
    None,
    None,
    lifted(lambda x1, x2, x3: x1 / x2 * x3.hypgeom_1f1(x1 + 1, x2 + 1)),
)
