"""True derivatives of SciPy's special functions; read once SciPy is there."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from . import formulas as f
from .arb import arb, each
from .balls import CALLS, Balls
from .choices import greatest
from .elementwise import POLES, row

_exp, _log, _expit = each(f.exp), each(arb.log), each(f.expit)
_bell, _density = each(f.bell), each(f.density)
_digamma, _trigamma = each(arb.digamma), each(f.trigamma)
_hazard, _log1p = each(f.hazard), each(arb.log1p)


def _half_root_pi() -> Any:
    return arb.const_sqrt_pi() / 2


def _two_over_root_pi() -> Any:
    return 2 / arb.const_sqrt_pi()


# The normal distribution

row(sp.erf, each(arb.erf), lambda x: _bell(x))
row(sp.erfc, each(arb.erfc), lambda x: -_bell(x))
row(sp.erfi, each(arb.erfi), lambda x: _two_over_root_pi() * _exp(x * x))
row(sp.erfcx, each(f.erfcx), lambda y, x: 2 * x * y - _two_over_root_pi())
row(sp.dawsn, each(f.dawsn), lambda y, x: 1 - 2 * x * y)
row(sp.erfinv, each(arb.erfinv), lambda y: _half_root_pi() * _exp(y * y))
row(sp.erfcinv, each(arb.erfcinv), lambda y: -_half_root_pi() * _exp(y * y))
row(sp.ndtr, each(f.ndtr), lambda x: _density(x))
row(sp.ndtri, each(f.ndtri), lambda y: 1 / _density(y))
row(sp.log_ndtr, each(f.log_ndtr), lambda x: _hazard(x))

# Logistic functions


def _logit(x: Any) -> Any:
    return _log(x) - _log1p(-x)


row(sp.expit, _expit, lambda y, x: y * _expit(-x))
row(sp.log_expit, each(f.log_expit), lambda x: _expit(-x))
row(sp.logit, _logit, lambda x: 1 / (x * (1 - x)))

# Gamma functions

_gammaln = each(f.gammaln)
_is_pole = each(lambda x: x <= 0 and x.is_integer())
for _fn in (sp.gamma, sp.gammaln, sp.digamma):
    POLES[_fn] = _is_pole
row(sp.gamma, each(arb.gamma), lambda y, x: y * _digamma(x))
row(sp.rgamma, each(arb.rgamma), lambda y, x: -y * _digamma(x))
row(sp.gammaln, _gammaln, lambda x: _digamma(x))
row(sp.digamma, _digamma, lambda x: _trigamma(x))
row(
    sp.betaln,
    lambda x1, x2: _gammaln(x1) + _gammaln(x2) - _gammaln(x1 + x2),
    lambda x1, x2: _digamma(x1) - _digamma(x1 + x2),
    lambda x1, x2: _digamma(x2) - _digamma(x1 + x2),
)

# Logarithms

row(sp.log1p, _log1p, lambda x: 1 / (1 + x))
row(sp.expm1, each(arb.expm1), lambda x: _exp(x))
row(sp.exp2, each(f.exp2), lambda y: y * arb.const_log2())
row(sp.cbrt, each(f.cbrt), lambda y: 1 / (3 * (y * y)))
row(sp.xlogy, each(f.xlogy, 2), lambda x2: _log(x2), lambda x1, x2: x1 / x2)
row(
    sp.xlog1py,
    each(f.xlog1py, 2),
    lambda x2: _log1p(x2),
    lambda x1, x2: x1 / (1 + x2),
)
row(sp.entr, each(f.entr), lambda x: -1 - _log(x))


# Shares of exponentials, by their definitions. The greatest is a constant that cancels.


def _lifted(x: Any, axis: Any) -> tuple[Any, Any]:
    """x without its greatest, and that: both differ by a constant from x and 0."""
    top = Balls(greatest(x.value, axis=axis, keepdims=True), x.dtype)
    return x - top, top


def softmax(x: Any, axis: Any = None) -> Any:
    e = np.exp(_lifted(x, axis)[0])
    return e / np.sum(e, axis=axis, keepdims=True)


def log_softmax(x: Any, axis: Any = None) -> Any:
    x, _ = _lifted(x, axis)
    return x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True))


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False) -> Any:
    x, top = _lifted(a, axis)
    e = np.exp(x) if b is None else b * np.exp(x)
    y = np.log(np.sum(e, axis=axis, keepdims=True)) + top
    return y if keepdims else np.squeeze(y, axis)


CALLS[sp.softmax] = softmax
CALLS[sp.log_softmax] = log_softmax
CALLS[sp.logsumexp] = logsumexp

from . import bessel, powers  # noqa: E402, F401  (they register)
