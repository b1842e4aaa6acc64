"""Bessel functions, integrals of elementary functions, hypergeometric functions.

The derivative of a Bessel function is half the sum or difference of its neighbours. The
order is never differentiated.
"""

from __future__ import annotations

from math import inf, pi
from typing import Any

import numpy as np
import scipy.special as sp
from scipy.special import _ufuncs

from ...core.errors import UnsupportedOperationError
from ...core.rule import differentiable
from ..arithmetic import finite, guard, nonzero, over, slope
from ..axes import conj
from ..elementwise import is_complex
from .common import refused, special

# Orders 0 and 1

special(sp.j0, lambda x: -sp.j1(x))
special(sp.j1, lambda x: 0.5 * (sp.j0(x) - sp.jv(2.0, x)))
special(sp.i0, lambda x: sp.i1(x))
special(sp.i1, lambda x: 0.5 * (sp.i0(x) + sp.iv(2.0, x)))
special(sp.y0, lambda x: -sp.y1(x), domain=(0, inf), note="0 from 0 down")
special(
    sp.y1,
    lambda x: 0.5 * (sp.y0(x) - sp.yv(2.0, x)),
    domain=(0, inf),
    note="0 from 0 down",
)
special(sp.k0, lambda x: -sp.k1(x), domain=(0, inf), note="0 from 0 down")
special(
    sp.k1,
    lambda x: -0.5 * (sp.k0(x) + sp.kv(2.0, x)),
    domain=(0, inf),
    note="0 from 0 down",
)

# The same times exp(-|x|) or, for k, exp(x)

special(
    sp.i0e, lambda x: sp.i1e(x) - np.sign(x) * sp.i0e(x), kinks=(0.0,), note="0 at 0"
)
special(
    sp.i1e,
    lambda x: 0.5 * (sp.i0e(x) + sp.ive(2.0, x)) - np.sign(x) * sp.i1e(x),
)
special(
    sp.k0e,
    lambda x: sp.k0e(x) - sp.k1e(x),
    domain=(0, inf),
    note="0 from 0 down",
)
special(
    sp.k1e,
    lambda x: sp.k1e(x) - 0.5 * (sp.k0e(x) + sp.kve(2.0, x)),
    domain=(0, inf),
    note="0 from 0 down",
)

# Any order


def _half_difference(fn: Any) -> Any:
    return lambda x1, x2: slope(0.5 * (fn(x1 - 1, x2) - fn(x1 + 1, x2)), nonzero, x2)


def _half_sum(fn: Any, sign: int) -> Any:
    def partial(x1: Any, x2: Any) -> Any:
        return slope(0.5 * sign * (fn(x1 - 1, x2) + fn(x1 + 1, x2)), nonzero, x2)

    return partial


_EDGE = "0 where it is infinite or not real"
special(sp.jv, refused(sp.jv, "v"), _half_difference(sp.jv), note=_EDGE)
special(sp.iv, refused(sp.iv, "v"), _half_sum(sp.iv, 1), note=_EDGE)
for _fn, _order in ((sp.yv, "v"), (sp.yn, "n")):
    special(
        _fn, refused(_fn, _order), _half_difference(_fn), domain=(0, inf), note=_EDGE
    )
for _fn, _order in ((sp.kv, "v"), (sp.kn, "n")):
    special(_fn, refused(_fn, _order), _half_sum(_fn, -1), domain=(0, inf), note=_EDGE)


def _ive(x1: Any, x2: Any) -> Any:
    if is_complex(x2):
        raise UnsupportedOperationError(
            "scipy.special.ive of a complex argument has no gradient rule: it is not "
            "analytic, being scaled by exp(-|x.real|)."
        )
    mean = 0.5 * (sp.ive(x1 - 1, x2) + sp.ive(x1 + 1, x2))
    return finite(mean - np.sign(x2) * sp.ive(x1, x2))


def _kve(x1: Any, x2: Any) -> Any:
    mean = 0.5 * (sp.kve(x1 - 1, x2) + sp.kve(x1 + 1, x2))
    return finite(sp.kve(x1, x2) - mean)


special(sp.ive, refused(sp.ive, "v"), _ive, note=_EDGE)
special(sp.kve, refused(sp.kve, "v"), _kve, domain=(0, inf), note=_EDGE)

# Integrals of elementary functions

special(sp.expi, lambda x: over(np.exp(x), x), kinks=(0.0,), note="0 at 0")


def _exp1(x: Any) -> Any:
    slope = over(-np.exp(-x), x)
    return slope if is_complex(x) else guard(slope, x > 0)


special(sp.exp1, _exp1, domain=(0, inf), note="0 from 0 down, if real")


def several_outputs(fn: Any, slopes: Any, **facts: Any) -> None:
    """Declare a function of x with several outputs: `slopes(y, x)` are theirs."""

    def vjp(dy: Any, y: Any, x: Any) -> Any:
        terms = [d * conj(p) for d, p in zip(dy, slopes(y, x), strict=True)]
        return sum(terms[1:], start=terms[0])

    def jvp(dx: Any, y: Any, x: Any) -> Any:
        return tuple(p * dx for p in slopes(y, x))

    differentiable(fn, vjp, jvp, saves="y x", **facts)


def _shichi(y: Any, x: Any) -> Any:
    if is_complex(x):
        even = over(np.sinh(x), x)
    else:  # sinh(x)/x, smooth at 0
        even = 0.5 * (sp.exprel(x) + sp.exprel(-x))
    return finite(even), finite(over(np.cosh(x), x))


def _fresnel(y: Any, x: Any) -> Any:
    angle = pi / 2 * (x * x)
    ok = np.isfinite(angle)
    angle = guard(angle, ok)
    return guard(np.sin(angle), ok), guard(np.cos(angle), ok)


several_outputs(
    sp.sici, lambda y, x: (np.sinc(x / pi), over(np.cos(x), x)), note="0 for ci at 0"
)
several_outputs(sp.shichi, _shichi, note="0 for chi at 0, and where it overflows")
several_outputs(sp.fresnel, _fresnel, note="0 where x**2 overflows")
several_outputs(
    sp.airy,
    lambda y, x: [finite(p) for p in (y[1], x * y[0], y[3], x * y[2])],
    note="0 where it overflows",
)

# W exp(W) = x, and y + log(y) = x

special(
    _ufuncs._lambertw,
    lambda y: over(np.exp(-y), 1 + y),
    None,
    None,
    note="0 at the branch point -1/e",
)
special(sp.wrightomega, lambda y: over(y, 1 + y))

# Hypergeometric functions of their last argument

special(
    sp.hyp0f1,
    refused(sp.hyp0f1, "v"),
    lambda x1, x2: finite(sp.hyp0f1(x1 + 1, x2) / x1),
)
special(
    sp.hyp1f1,
    refused(sp.hyp1f1, "a"),
    refused(sp.hyp1f1, "b"),
    lambda x1, x2, x3: finite(x1 / x2 * sp.hyp1f1(x1 + 1, x2 + 1, x3)),
)
special(
    sp.hyp2f1,
    refused(sp.hyp2f1, "a"),
    refused(sp.hyp2f1, "b"),
    refused(sp.hyp2f1, "c"),
    lambda x1, x2, x3, x4: finite(x1 * x2 / x3 * sp.hyp2f1(x1 + 1, x2 + 1, x3 + 1, x4)),
    domain=(-inf, 1),
)
