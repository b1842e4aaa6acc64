"""True functions, found by the names that frameworks give them.

Each is written in NumPy's and SciPy's functions, so that it runs on balls. Conventions
differ: gelu is the approximate one in some framework unless told otherwise, and
leaky_relu has another slope. Options and attributes are respected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import pi, sqrt
from typing import Any

import numpy as np

from ...core.arrays import FRAMEWORKS
from ...core.errors import GradsmithError
from .certified.arb import arb, balls_of
from .certified.balls import Balls

KNOWN: dict[str, Callable[..., Any]] = {}  # by all of their names
VECTORS: list[Any] = []  # those of vectors


def _known(*others: str, vectors: bool = False) -> Any:
    """Know a function by its name, and by others."""

    def know(fn: Any) -> Any:
        KNOWN.update((name, fn) for name in (fn.__name__, *others))
        if vectors:
            VECTORS.append(fn)
        return fn

    return know


@dataclass(frozen=True)
class Special:
    """A function of scipy.special, which is imported once it is called."""

    name: str

    def __call__(self, *xs: Any, **options: Any) -> Any:
        try:
            from scipy import special
        except ImportError as error:
            raise GradsmithError(
                f"the true {self.name} is taken from scipy.special, and SciPy is not "
                "installed\n  what to do: pip install scipy"
            ) from error
        return getattr(special, self.name)(*xs, **options)


_expit, _ndtr = Special("expit"), Special("ndtr")


@_known()
def gelu(x: Any) -> Any:
    """x ndtr(x)"""
    return x * _ndtr(x)


@_known()
def gelu_tanh(x: Any) -> Any:
    """x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x**3)))"""
    exact = isinstance(x, Balls)
    root = Balls(balls_of((2 / arb.pi()).sqrt()), x.dtype) if exact else sqrt(2 / pi)
    cubic = arb("0.044715") if exact else 0.044715
    factor = Balls(balls_of(cubic), x.dtype) if exact else cubic
    # (1 + tanh(u))/2 is expit(2 u), which does not cancel
    return x * _expit(2 * root * (x + factor * x * x * x))


@_known()
def quick_gelu(x: Any) -> Any:
    """x expit(1.702 x)"""
    return x * _expit(1.702 * x)


@_known("swish")
def silu(x: Any) -> Any:
    """x expit(x)"""
    return x * _expit(x)


@_known()
def softplus(x: Any) -> Any:
    """log(1 + exp(x))"""
    return np.logaddexp(x, 0)


def softplus_beta(x: Any, beta: float) -> Any:
    """log(1 + exp(beta x))/beta"""
    return softplus(beta * x) / beta


@_known()
def mish(x: Any) -> Any:
    """x tanh(log(1 + exp(x)))"""
    return x * np.tanh(softplus(x))


@_known()
def relu(x: Any) -> Any:
    """max(x, 0)"""
    return np.maximum(x, 0)


@_known()
def relu6(x: Any) -> Any:
    """min(max(x, 0), 6)"""
    return np.minimum(np.maximum(x, 0), 6)


@_known("leakyrelu")
def leaky_relu(x: Any, slope: float = 0.01) -> Any:
    """x, or a small part of it where x < 0"""
    return np.where(x > 0, x, slope * x)


@_known()
def elu(x: Any, alpha: float = 1.0) -> Any:
    """x, or alpha (exp(x) - 1) where x < 0"""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


@_known("hardsigmoid")
def hard_sigmoid(x: Any) -> Any:
    """min(max(x + 3, 0), 6)/6"""
    return relu6(x + 3) / 6


@_known("hardswish", "hard_silu")
def hard_swish(x: Any) -> Any:
    """x min(max(x + 3, 0), 6)/6"""
    return x * hard_sigmoid(x)


@_known("hardtanh")
def hard_tanh(x: Any) -> Any:
    """min(max(x, -1), 1)"""
    return np.minimum(np.maximum(x, -1), 1)


@_known()
def softsign(x: Any) -> Any:
    """x/(1 + |x|)"""
    return x / (1 + np.abs(x))


@_known()
def tanhshrink(x: Any) -> Any:
    """x - tanh(x)"""
    return x - np.tanh(x)


@_known()
def rsqrt(x: Any) -> Any:
    """1/sqrt(x)"""
    return 1 / np.sqrt(x)


@_known(vectors=True)
def softmax(x: Any) -> Any:
    """exp(x)/sum(exp(x))"""
    return Special("softmax")(x, axis=-1)


@_known(vectors=True)
def log_softmax(x: Any) -> Any:
    """log(softmax(x))"""
    return Special("log_softmax")(x, axis=-1)


@_known("reduce_logsumexp", vectors=True)
def logsumexp(x: Any) -> Any:
    """log(sum(exp(x)))"""
    return Special("logsumexp")(x, axis=-1)


@_known(
    "linalg_norm",
    "linalg_vector_norm",
    "vector_norm",
    "euclidean_norm",
    "reduce_euclidean_norm",
    vectors=True,
)
def norm(x: Any) -> Any:
    """sqrt(sum(x**2))"""
    return np.linalg.norm(x, axis=-1)


@_known("sum", "reduce_sum", vectors=True)
def total(x: Any) -> Any:
    """sum(x)"""
    return np.sum(x, axis=-1)


@_known("reduce_mean", vectors=True)
def mean(x: Any) -> Any:
    """sum(x)/n"""
    return np.mean(x, axis=-1)


# Functions of NumPy and of scipy.special, each with its other names

_NUMPY = """
    abs, absolute, add, arccos acos, arccosh acosh, arcsin asin, arcsinh asinh,
    arctan atan, arctan2 atan2, arctanh atanh, cbrt, cos, cosh, deg2rad,
    divide div true_divide truediv, exp, exp2, expm1, hypot, log, log10, log1p, log2,
    logaddexp, maximum, minimum, multiply mul, negative neg, positive,
    power pow pow_scalar, rad2deg, reciprocal, sin, sinc, sinh, sqrt, square,
    subtract sub, tan, tanh
"""
_SPECIAL = """
    betaln lbeta, digamma psi polygamma0, entr, erf, erfc, erfcinv, erfcx,
    erfinv erf_inv, expit sigmoid logistic, gamma, gammaln lgamma loggamma,
    log_expit logsigmoid log_sigmoid, log_ndtr, logit, ndtr, ndtri, xlog1py, xlogy
"""
for _names, _of in ((_NUMPY, lambda name: getattr(np, name)), (_SPECIAL, Special)):
    for _name, *_others in map(str.split, _names.split(",")):
        KNOWN.update(dict.fromkeys((_name, *_others), _of(_name)))

# Functions that depend on options, and which


def _with_slope(options: dict[str, Any]) -> Any:
    slope = options.get("negative_slope", options.get("alpha", 0.01))
    return partial(leaky_relu, slope=slope)


def _with_beta(options: dict[str, Any]) -> Any:
    beta = options.get("beta", 1)
    return softplus if beta == 1 else partial(softplus_beta, beta=beta)


_CONVENTIONS: dict[Any, tuple[tuple[str, ...], Callable[..., Any]]] = {
    gelu: (
        ("approximate",),
        lambda o: gelu_tanh if o.get("approximate") in (True, "tanh") else gelu,
    ),
    leaky_relu: (("negative_slope", "alpha", "inplace"), _with_slope),
    elu: (("alpha", "inplace"), lambda o: partial(elu, alpha=o.get("alpha", 1.0))),
    softplus: (("beta", "threshold"), _with_beta),
}


def reference_for(
    name: str, framework: str, options: dict[str, Any]
) -> Callable[..., Any] | None:
    """The true function by a name, or None if it is not known."""
    name = name.lower()
    for affix in ("special_", "_scipy_special_", "np_"):
        name = name.removeprefix(affix)
    fn = KNOWN.get(name.removesuffix("_v2"))
    allowed, choose = _CONVENTIONS.get(fn, ((), None))
    if set(options) - {"axis", "dim", *allowed}:
        return None  # with an option that we don't know it is another function
    if choose is None or fn is None:
        return fn
    usual = FRAMEWORKS[framework].natives.defaults.get(fn.__name__, {})
    return choose({**usual, **options})


def described(fn: Any) -> str:
    """What a true function is, in words.

    >>> described(gelu), described(np.sinc)
    ('gelu(x) = x ndtr(x)', 'np.sinc')
    """
    if isinstance(fn, Special):
        return f"scipy.special.{fn.name}"
    fn = getattr(fn, "func", fn)
    if getattr(fn, "__module__", "") != __name__:
        return f"np.{fn.__name__}"
    name = {"gelu_tanh": "gelu", "total": "sum"}.get(fn.__name__, fn.__name__)
    return f"{name}(x) = {fn.__doc__}"
