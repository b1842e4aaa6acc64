"""The rows of SciPy's special functions; read once SciPy is imported."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from . import bessel  # noqa: F401  (it registers)
from . import formulas as f
from . import series_formulas as s
from .arb import arb, each
from .arrays import below_greatest, log_of_sum
from .balls import CALLS
from .elementwise import lifted, on_either, row
from .series import SERIES
from .series_formulas import by_own_value, by_slope

_exp, _log, _log1p = on_either(arb.exp, s.exp), each(arb.log), each(arb.log1p)
_expit, _power = on_either(f.expit, s.expit), each(f.power, 2)
_digamma, _bell = each(arb.digamma), each(f.bell)


def _root_pi() -> Any:
    return arb.const_sqrt_pi()


# NumPy has them too

for _name in ("cbrt", "exp2", "expm1", "log1p", "sinc"):
    for _table in (CALLS, SERIES):
        _table[getattr(sp, _name)] = _table[getattr(np, _name)]

# The normal distribution

_density = on_either(f.density, f.density)
_hazard = on_either(f.hazard, s.hazard)
row(sp.erf, arb.erf, _bell, series="erf")
row(sp.erfc, arb.erfc, lambda x: -_bell(x), series="erfc")
row(sp.erfi, arb.erfi, lambda x: _exp(x * x) * (2 / _root_pi()), series=by_slope)
row(sp.erfcx, f.erfcx, lambda y, x: 2 * x * y - 2 / _root_pi(), series=s.erfcx)
row(sp.dawsn, f.dawsn, lambda y, x: 1 - 2 * x * y)
row(sp.erfinv, arb.erfinv, lambda y: _exp(y * y) * (_root_pi() / 2),
    series=by_own_value)  # fmt: skip
row(sp.erfcinv, arb.erfcinv, lambda y: -_exp(y * y) * (_root_pi() / 2),
    series=by_own_value)  # fmt: skip
row(sp.ndtr, f.ndtr, lambda x: _density(x), series=f.ndtr)
row(sp.ndtri, f.ndtri, lambda y: 1 / _density(y), series=by_own_value)
row(sp.ndtri_exp, lambda x: f.ndtri(f.exp(x)), lambda y: 1 / _hazard(y))
row(sp.log_ndtr, f.log_ndtr, lambda x: _hazard(x), series=by_slope)

# Logistic functions

row(sp.expit, f.expit, lambda y, x: y * _expit(-x), series=s.expit)
row(sp.log_expit, f.log_expit, lambda x: _expit(-x), series=by_slope)
row(
    sp.logit,
    lambda x: x.log() - (-x).log1p(),
    lambda x: 1 / (x * (1 - x)),
    series=by_slope,
)

# Gamma functions

_is_pole = each(lambda x: x <= 0 and x.is_integer())
row(
    sp.gamma,
    arb.gamma,
    lambda y, x: y * _digamma(x),
    series=s.gamma,
    outside=_is_pole,
)
row(sp.rgamma, arb.rgamma, lambda y, x: -y * _digamma(x), series=s.rgamma)
row(sp.gammaln, f.gammaln, _digamma, series=s.gammaln, outside=_is_pole)
row(sp.loggamma, arb.lgamma, _digamma)
row(sp.digamma, arb.digamma, each(f.trigamma), series=s.digamma, outside=_is_pole)
row(
    sp.betaln,
    lambda x1, x2: f.gammaln(x1) + f.gammaln(x2) - f.gammaln(x1 + x2),
    lambda x1, x2: _digamma(x1) - _digamma(x1 + x2),
    lambda x1, x2: _digamma(x2) - _digamma(x1 + x2),
)
row(
    sp.beta,
    lambda x1, x2: x1.gamma() * x2.gamma() / (x1 + x2).gamma(),
    lambda y, x1, x2: y * (_digamma(x1) - _digamma(x1 + x2)),
    lambda y, x1, x2: y * (_digamma(x2) - _digamma(x1 + x2)),
)

# Logarithms and entropies

row(
    sp.xlogy,
    f.xlogy,
    lambda x2: _log(x2),
    lambda x1, x2: x1 / x2,
    series=lambda u, v: u * v.log(),
)
row(
    sp.xlog1py,
    f.xlog1py,
    lambda x2: _log1p(x2),
    lambda x1, x2: x1 / (1 + x2),
    series=s.xlog1py,
)
row(sp.entr, f.entr, lambda x: -1 - _log(x), series=lambda u: -u * u.log())


def _rel_entr(x1: Any, x2: Any) -> Any:
    return f.ZERO if x1 == 0 else x1 * (x1 / x2).log()


row(
    sp.rel_entr,
    _rel_entr,
    lambda x1, x2: _log(x1 / x2) + 1,
    lambda x1, x2: -x1 / x2,
)
row(
    sp.kl_div,
    lambda x1, x2: _rel_entr(x1, x2) - x1 + x2,
    lambda x1, x2: _log(x1 / x2),
    lambda x1, x2: (x2 - x1) / x2,
)

# Angles in degrees, cos(x) - 1 = -2 sin(x/2)**2, and 10**x


def _degree() -> Any:
    return arb.pi() / 180


_sindg, _cosdg = each(lambda x: (x / 180).sin_pi()), each(lambda x: (x / 180).cos_pi())
row(sp.sindg, _sindg, lambda x: _degree() * _cosdg(x))
row(sp.cosdg, _cosdg, lambda x: -_degree() * _sindg(x))
row(
    sp.tandg,
    lambda x: (x / 180).tan_pi(),
    lambda y: _degree() * (1 + y * y),
    outside=each(lambda x: ((x + 90) / 180).is_integer()),
)
row(
    sp.cotdg,
    lambda x: (x / 180).cot_pi(),
    lambda y: -_degree() * (1 + y * y),
    outside=each(lambda x: (x / 180).is_integer()),
)
row(sp.cosm1, lambda x: -2 * (x / 2).sin() ** 2, lifted(lambda x: -x.sin()))
row(
    sp.exp10,
    lambda x: f.exp(x * arb.const_log10()),
    lambda y: y * arb.const_log10(),
)

# exprel(x) = (exp(x) - 1)/x, whose derivative is 1F1(2, 3, x)/2


def _exprel(x: Any) -> Any:
    return f.ONE if x == 0 else x.expm1() / x


def _exprel_slope(x: Any) -> Any:
    if abs(x) < 1:
        return x.hypgeom_1f1(arb(2), arb(3)) / 2
    return (f.exp(x) - _exprel(x)) / x


row(sp.exprel, _exprel, each(_exprel_slope))

# Powers. boxcox is (x**p - 1)/p; 1p: of 1 + x

row(
    sp.powm1,
    lambda x1, x2: f.power(x1, x2) - 1,
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
    _boxcox,
    lambda x1, x2: _power(x1, x2 - 1),
    lambda x1, x2: _by_power(x1, x2),
)
row(
    sp.boxcox1p,
    lambda x, p: _boxcox(1 + x, p),
    lambda x1, x2: _power(1 + x1, x2 - 1),
    lambda x1, x2: _by_power(1 + x1, x2),
)


def _inverse(x: Any, p: Any) -> Any:
    return f.exp(x) if p == 0 else (1 + p * x) ** (1 / p)


def _inverse_slope(x1: Any, x2: Any) -> Any:
    return f.exp(x1) if x2 == 0 else (1 + x2 * x1) ** (1 / x2 - 1)


def _inverse_by_power(x1: Any, x2: Any) -> Any:
    if x2 == 0:
        return -x1 * x1 / 2 * f.exp(x1)
    t = 1 + x2 * x1
    return _inverse(x1, x2) * (x1 / (x2 * t) - t.log() / (x2 * x2))


for _fn, _less in ((sp.inv_boxcox, 0), (sp.inv_boxcox1p, 1)):
    row(
        _fn,
        lambda x, p, less=_less: _inverse(x, p) - less,
        lifted(_inverse_slope),
        lifted(_inverse_by_power),
    )

# Losses, and shares of exponentials, by their definitions


def huber(delta: Any, r: Any) -> Any:
    size = np.abs(r)
    return np.where(size <= delta, r * r / 2, delta * (size - delta / 2))


def softmax(x: Any, axis: Any = None) -> Any:
    e = np.exp(below_greatest(x, axis)[0])
    return e / np.sum(e, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Any = None) -> Any:
    x, _ = below_greatest(x, axis)
    return x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True))


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    return log_of_sum(a, axis, weights=b, keepdims=keepdims)


CALLS[sp.huber] = huber
CALLS[sp.pseudo_huber] = lambda delta, r: delta * (np.hypot(delta, r) - delta)
CALLS[sp.softmax] = softmax
CALLS[sp.log_softmax] = log_softmax
CALLS[sp.logsumexp] = logsumexp
