"""Functions of one ball, or two, that Arb does not name as NumPy and SciPy do.

Those without a branch (log2, ndtr, density) are functions of a series, too.

Branches look at a midpoint, and each of them encloses the value wherever it is taken:
a branch is chosen for its accuracy, never for its validity.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from .arb import arb
from .balls import state

ZERO, ONE, TWO = arb(0), arb(1), arb(2)


exp = arb.exp  # exponents have no end: log(exp(1e38)) is 1e38


def exp2(x: Any) -> Any:
    return TWO**x


def log2(x: Any) -> Any:
    return x.log() / arb.const_log2()


def log10(x: Any) -> Any:
    return x.log() / arb.const_log10()


def cbrt(x: Any) -> Any:
    if x == 0:
        return ZERO
    return x.root(3) if x > 0 else -(-x).root(3)


def expit(x: Any) -> Any:
    return ONE / (ONE + exp(-x))


def log_expit(x: Any) -> Any:
    return -exp(-x).log1p() if x > -_MANY else x - exp(x).log1p()


_MANY = arb(1e6)


def logaddexp(x1: Any, x2: Any) -> Any:
    if x1 < x2:
        x1, x2 = x2, x1
    return x1 + exp(x2 - x1).log1p()


def hypot(x1: Any, x2: Any) -> Any:
    if x1 == 0 or x2 == 0:
        return abs(x1 + x2)
    return (x1 * x1 + x2 * x2).sqrt()


def power(x1: Any, x2: Any) -> Any:
    if x2 == 0.5:
        return x1.sqrt()
    return x1**x2


def sinc_slope(x: Any) -> Any:
    """The derivative of sin(pi x)/(pi x).

    It is -t pi/3 0F1(5/2; -t**2/4) with t = pi x, which loses nothing near 0.
    """
    if abs(x) < 1:
        t = arb.pi() * x
        return -arb.pi() * t / 3 * (-t * t / 4).hypgeom_0f1(_FIVE_HALVES)
    return (x.cos_pi() - x.sinc_pi()) / x


_FIVE_HALVES = arb(2.5)


def bell(x: Any) -> Any:
    """The derivative of erf."""
    return TWO / arb.const_sqrt_pi() * exp(-x * x)


def root_half() -> Any:
    return arb(0.5).sqrt()


def ndtr(x: Any) -> Any:
    return (-x * root_half()).erfc() / 2


def log_ndtr(x: Any) -> Any:
    if x > 0:
        return (-(x * root_half()).erfc() / 2).log1p()
    if x < -_FAR:
        return -x * x / 2 - (2 * arb.pi()).log() / 2 - hazard(x).log()
    return ndtr(x).log()


def density(x: Any) -> Any:
    return (-x * x / 2).exp() * (root_half() / arb.const_sqrt_pi())


def hazard(x: Any) -> Any:
    """The derivative of log_ndtr.

    Far on the left density and ndtr underflow together. There it is the inverse of
    U(1/2, 1/2, x**2/2)/sqrt(2), for erfc(t) = exp(-t**2)/sqrt(pi) U(1/2, 1/2, t**2).
    """
    if x < -_FAR:
        return TWO.sqrt() / (x * x / 2).hypgeom_u(_HALF, _HALF)
    return density(x) / ndtr(x)


_FAR, _HALF = arb(20), arb(0.5)


def ndtri(x: Any) -> Any:
    return -(TWO * x).erfcinv() * TWO.sqrt()


def erfcx(x: Any) -> Any:
    if x > _FAR:
        return (x * x).hypgeom_u(_HALF, _HALF) / arb.const_sqrt_pi()
    return exp(x * x) * x.erfc()


def dawsn(x: Any) -> Any:
    return exp(-x * x) * x.erfi() * arb.const_sqrt_pi() / 2


def gammaln(x: Any) -> Any:
    return x.lgamma() if x > 0 else abs(x.gamma()).log()


def trigamma(x: Any) -> Any:
    """The derivative of digamma; left of 0 by reflection."""
    if x > 0:
        return TWO.zeta(x)
    t = arb.pi() / x.sin_pi()
    return t * t - TWO.zeta(1 - x)


def xlogy(x1: Any, x2: Any) -> Any:
    return ZERO if x1 == 0 else x1 * x2.log()


def xlog1py(x1: Any, x2: Any) -> Any:
    return ZERO if x1 == 0 else x1 * x2.log1p()


def entr(x: Any) -> Any:
    return ZERO if x == 0 else -x * x.log()


@cache
def side_of(sign: int) -> Any:
    return arb(sign)


def sign(x: Any) -> Any:
    """1, 0, -1, or all between where it is open; at 0 that of the side."""
    if x > 0:
        return ONE
    if x < 0:
        return -ONE
    return side_of(state.notes.side) if x == 0 else arb(0, 1)
