"""True derivatives of SciPy's entropies, losses, power transforms and their like."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from . import formulas as f
from .arb import arb, each
from .balls import CALLS
from .elementwise import POLES, row

_exp, _log, _log1p = each(f.exp), each(arb.log), each(arb.log1p)
_digamma = each(arb.digamma)


def _logaddexp2(x1: Any, x2: Any) -> Any:
    ln2 = arb.const_log2()
    return f.logaddexp(x1 * ln2, x2 * ln2) / ln2


def _share2(x1: Any, x2: Any) -> Any:
    return f.expit((x1 - x2) * arb.const_log2())


row(
    np.logaddexp2,
    each(_logaddexp2, 2),
    lambda x1, x2: each(_share2, 2)(x1, x2),
    lambda x1, x2: each(_share2, 2)(x2, x1),
)
row(
    sp.exp10,
    each(lambda x: f.exp(x * arb.const_log10())),
    lambda y: y * arb.const_log10(),
)

# Angles in degrees, and cos(x) - 1 = -2 sin(x/2)**2


def _degree() -> Any:
    return arb.pi() / 180


_sindg, _cosdg = each(lambda x: (x / 180).sin_pi()), each(lambda x: (x / 180).cos_pi())
_tandg, _cotdg = each(lambda x: (x / 180).tan_pi()), each(lambda x: (x / 180).cot_pi())
row(sp.sindg, _sindg, lambda x: _degree() * _cosdg(x))
row(sp.cosdg, _cosdg, lambda x: -_degree() * _sindg(x))
row(sp.tandg, _tandg, lambda y: _degree() * (1 + y * y))
row(sp.cotdg, _cotdg, lambda y: -_degree() * (1 + y * y))
POLES[sp.tandg] = each(lambda x: ((x + 90) / 180).is_integer())
POLES[sp.cotdg] = each(lambda x: (x / 180).is_integer())
row(sp.cosm1, each(lambda x: -2 * (x / 2).sin() ** 2), lambda x: -each(arb.sin)(x))

# exprel(x) = (exp(x) - 1)/x, whose derivative is 1F1(2, 3, x)/2


def _exprel(x: Any) -> Any:
    return f.ONE if x == 0 else x.expm1() / x


def _exprel_slope(x: Any) -> Any:
    if abs(x) < 1:
        return x.hypgeom_1f1(arb(2), arb(3)) / 2
    return (f.exp(x) - _exprel(x)) / x


row(sp.exprel, each(_exprel), lambda x: each(_exprel_slope)(x))

# Entropies


def _rel_entr(x1: Any, x2: Any) -> Any:
    return f.ZERO if x1 == 0 else x1 * (x1 / x2).log()


_log_ratio = each(lambda x1, x2: (x1 / x2).log(), 2)
row(
    sp.rel_entr,
    each(_rel_entr, 2),
    lambda x1, x2: _log_ratio(x1, x2) + 1,
    lambda x1, x2: -x1 / x2,
)
row(
    sp.kl_div,
    each(lambda x1, x2: _rel_entr(x1, x2) - x1 + x2, 2),
    lambda x1, x2: _log_ratio(x1, x2),
    lambda x1, x2: (x2 - x1) / x2,
)


# Losses, by their definitions


def huber(delta: Any, r: Any) -> Any:
    size = np.abs(r)
    return np.where(size <= delta, r * r / 2, delta * (size - delta / 2))


CALLS[sp.huber] = huber
CALLS[sp.pseudo_huber] = lambda delta, r: delta * (np.hypot(delta, r) - delta)

# Powers. boxcox is (x**p - 1)/p; 1p: of 1 + x

_power = each(f.power, 2)
row(
    sp.powm1,
    each(lambda x1, x2: f.power(x1, x2) - 1, 2),
    lambda x1, x2: x2 * _power(x1, x2 - 1),
    lambda x1, x2: _power(x1, x2) * _log(x1),
)


def _boxcox(x: Any, p: Any) -> Any:
    return x.log() if p == 0 else (x**p - 1) / p


def _boxcox_by_power(x: Any, p: Any) -> Any:
    t = x.log()
    return t * t / 2 if p == 0 else (x**p * (p * t - 1) + 1) / (p * p)


_by_power = each(_boxcox_by_power, 2)
row(
    sp.boxcox,
    each(_boxcox, 2),
    lambda x1, x2: _power(x1, x2 - 1),
    lambda x1, x2: _by_power(x1, x2),
)
row(
    sp.boxcox1p,
    each(lambda x, p: _boxcox(1 + x, p), 2),
    lambda x1, x2: _power(1 + x1, x2 - 1),
    lambda x1, x2: _by_power(1 + x1, x2),
)


def _inverse(x: Any, p: Any) -> Any:
    return f.exp(x) if p == 0 else (1 + p * x) ** (1 / p)


def _inverse_slope(x: Any, p: Any) -> Any:
    return f.exp(x) if p == 0 else (1 + p * x) ** (1 / p - 1)


def _inverse_by_power(x: Any, p: Any) -> Any:
    if p == 0:
        return -x * x / 2 * f.exp(x)
    t = 1 + p * x
    return _inverse(x, p) * (x / (p * t) - t.log() / (p * p))


for _fn, _less in ((sp.inv_boxcox, 0), (sp.inv_boxcox1p, 1)):
    row(
        _fn,
        each(lambda x, p, less=_less: _inverse(x, p) - less, 2),
        lambda x1, x2: each(_inverse_slope, 2)(x1, x2),
        lambda x1, x2: each(_inverse_by_power, 2)(x1, x2),
    )

# The beta function

row(
    sp.beta,
    each(lambda x1, x2: x1.gamma() * x2.gamma() / (x1 + x2).gamma(), 2),
    lambda y, x1, x2: y * (_digamma(x1) - _digamma(x1 + x2)),
    lambda y, x1, x2: y * (_digamma(x2) - _digamma(x1 + x2)),
)
