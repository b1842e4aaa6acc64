"""True functions by their names, as the frameworks call them.

Each is written in NumPy's and SciPy's functions, so that it runs on balls. Names that
differ in letters only, or by a prefix, are brought together in `names`.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

import numpy as np

from ...core.errors import GradsmithError
from .certified.arb import arb, balls_of
from .certified.balls import Balls


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


def gelu(x: Any) -> Any:
    """x ndtr(x)"""
    return x * _ndtr(x)


def gelu_tanh(x: Any) -> Any:
    """x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x**3)))"""
    exact = isinstance(x, Balls)
    root = Balls(balls_of((2 / arb.pi()).sqrt()), x.dtype) if exact else sqrt(2 / pi)
    cubic = arb("0.044715") if exact else 0.044715
    factor = Balls(balls_of(cubic), x.dtype) if exact else cubic
    # (1 + tanh(u))/2 is expit(2 u), which does not cancel
    return x * _expit(2 * root * (x + factor * x * x * x))


def quick_gelu(x: Any) -> Any:
    """x expit(1.702 x)"""
    return x * _expit(1.702 * x)


def silu(x: Any) -> Any:
    """x expit(x)"""
    return x * _expit(x)


def softplus(x: Any) -> Any:
    """log(1 + exp(x))"""
    return np.logaddexp(x, 0)


def softplus_beta(x: Any, beta: float) -> Any:
    """log(1 + exp(beta x))/beta"""
    return softplus(beta * x) / beta


def mish(x: Any) -> Any:
    """x tanh(log(1 + exp(x)))"""
    return x * np.tanh(softplus(x))


def relu(x: Any) -> Any:
    """max(x, 0)"""
    return np.maximum(x, 0)


def relu6(x: Any) -> Any:
    """min(max(x, 0), 6)"""
    return np.minimum(np.maximum(x, 0), 6)


def leaky_relu(x: Any, slope: float = 0.01) -> Any:
    """x, or a small part of it where x < 0"""
    return np.where(x > 0, x, slope * x)


def elu(x: Any, alpha: float = 1.0) -> Any:
    """x, or alpha (exp(x) - 1) where x < 0"""
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def hard_sigmoid(x: Any) -> Any:
    """min(max(x + 3, 0), 6)/6"""
    return relu6(x + 3) / 6


def hard_swish(x: Any) -> Any:
    """x min(max(x + 3, 0), 6)/6"""
    return x * hard_sigmoid(x)


def hard_tanh(x: Any) -> Any:
    """min(max(x, -1), 1)"""
    return np.minimum(np.maximum(x, -1), 1)


def softsign(x: Any) -> Any:
    """x/(1 + |x|)"""
    return x / (1 + np.abs(x))


def tanhshrink(x: Any) -> Any:
    """x - tanh(x)"""
    return x - np.tanh(x)


def rsqrt(x: Any) -> Any:
    """1/sqrt(x)"""
    return 1 / np.sqrt(x)


def softmax(x: Any) -> Any:
    """exp(x)/sum(exp(x))"""
    return Special("softmax")(x, axis=-1)


def log_softmax(x: Any) -> Any:
    """log(softmax(x))"""
    return Special("log_softmax")(x, axis=-1)


def logsumexp(x: Any) -> Any:
    """log(sum(exp(x)))"""
    return Special("logsumexp")(x, axis=-1)


def norm(x: Any) -> Any:
    """sqrt(sum(x**2))"""
    return np.linalg.norm(x, axis=-1)


def total(x: Any) -> Any:
    """sum(x)"""
    return np.sum(x, axis=-1)


def mean(x: Any) -> Any:
    """sum(x)/n"""
    return np.mean(x, axis=-1)


VECTORS = (softmax, log_softmax, logsumexp, norm, total, mean)
