"""Every operation with inputs and a reference in float64, for the tests in all four."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special as sp

import gradsmith.numpy as gnp
from gradsmith import ops

_rng = np.random.default_rng(5)


@dataclass(frozen=True, eq=False)
class Sample:
    """`fn` of the arrays `xs` and of `fixed`, which is data; `value` is NumPy's."""

    name: str
    fn: Callable[..., Any]
    xs: tuple[np.ndarray, ...]
    value: Callable[..., Any]
    fixed: tuple[np.ndarray, ...] = ()
    # What the gradient is the derivative of, where it is not that of the value
    means: Callable[..., Any] | None = None

    def __str__(self) -> str:
        return self.name


def _normal(*shape: int) -> np.ndarray:
    return _rng.normal(size=shape)


X, T = _normal(3, 4), _normal(3, 4)
P = np.abs(_normal(3, 4)) + 0.2
Q = P / P.sum(-1, keepdims=True)
BITS = np.array([[0.0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 1, 0]])
LABELS = np.array([2, -100, 0])


def _lse(x: Any, axis: Any = -1) -> Any:
    return sp.logsumexp(x, axis=axis)


def _sigmoid_slope(x: Any) -> Any:
    return sp.expit(x) * sp.expit(-x)


def _gelu_tanh(x: Any) -> Any:
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _cross_entropy(x: Any, labels: Any, smoothing: float = 0, z: float = 0) -> Any:
    kept = labels != -100
    q = np.eye(x.shape[-1])[np.where(kept, labels, 0)]
    rows = _shares(x, q, smoothing, z)
    return np.sum(rows[kept]) / kept.sum()


def _shares(x: Any, q: Any, smoothing: float = 0, z: float = 0) -> Any:
    q = q * (1 - smoothing) + smoothing / x.shape[-1]
    return -np.sum(q * sp.log_softmax(x, -1), -1) + z * _lse(x) ** 2


def _binary(x: Any, t: Any, weight: float = 1) -> Any:
    return -weight * t * sp.log_expit(x) - (1 - t) * sp.log_expit(-x)


def _focal(x: Any, t: Any, gamma: float, alpha: float | None = None) -> Any:
    z = x * (2 * t - 1)
    weight = 1 if alpha is None else t * alpha + (1 - t) * (1 - alpha)
    return np.mean(-weight * sp.expit(-z) ** gamma * sp.log_expit(z))


def _huber(x: Any, t: Any, delta: float) -> Any:
    size = np.abs(x - t)
    return np.where(size <= delta, size**2 / 2, delta * (size - delta / 2))


def _gaussian(x: Any, t: Any, v: Any) -> Any:
    return np.mean((np.log(2 * np.pi * v) + (x - t) ** 2 / v) / 2)


STABLE = [
    Sample("sigmoid", ops.sigmoid, (X,), sp.expit),
    Sample("silu", ops.silu, (X,), lambda x: x * sp.expit(x)),
    Sample("gelu", ops.gelu, (X,), lambda x: x * sp.ndtr(x)),
    Sample("gelu-tanh", lambda x: ops.gelu(x, "tanh"), (X,), _gelu_tanh),
    Sample("softplus", ops.softplus, (X,), lambda x: np.logaddexp(x, 0)),
    Sample("log_sigmoid", ops.log_sigmoid, (X,), sp.log_expit),
    Sample("softmax", ops.softmax, (X,), lambda x: sp.softmax(x, -1)),
    Sample("softmax-0", lambda x: ops.softmax(x, 0), (X,), lambda x: sp.softmax(x, 0)),
    Sample("log_softmax", ops.log_softmax, (X,), lambda x: sp.log_softmax(x, -1)),
    Sample("logsumexp", ops.logsumexp, (X,), lambda x: _lse(x, None)),
    Sample(
        "logsumexp-axis",
        lambda x: ops.logsumexp(x, axis=0, keepdims=True),
        (X,),
        lambda x: sp.logsumexp(x, axis=0, keepdims=True),
    ),
    Sample("log1mexp", ops.log1mexp, (P,), lambda x: np.log(-np.expm1(-x))),
    Sample("xlogy", ops.xlogy, (X, P), sp.xlogy),
    Sample("sqrt", ops.sqrt, (P,), np.sqrt),
    Sample("divide", ops.divide, (X, P[0]), np.divide),
    Sample("norm", ops.norm, (X,), np.linalg.norm),
    Sample(
        "norm-axis",
        lambda x: ops.norm(x, -1),
        (X,),
        lambda x: np.linalg.norm(x, axis=-1),
    ),
    Sample(
        "safe_where",
        lambda x: ops.safe_where(x > 0, gnp.log, x, -7.0),
        (X,),
        lambda x: np.where(x > 0, np.log(np.abs(x)), -7.0),
    ),
]

LOSSES = [
    Sample("cross_entropy", ops.cross_entropy, (X,), _cross_entropy, (LABELS,)),
    Sample(
        "cross_entropy-all",
        lambda x, labels: ops.cross_entropy(
            x, labels, label_smoothing=0.1, z_loss=0.01
        ),
        (X,),
        lambda x, labels: _cross_entropy(x, labels, 0.1, 0.01),
        (LABELS,),
    ),
    Sample(
        "cross_entropy-shares",
        lambda x, q: ops.cross_entropy(
            x, q, label_smoothing=0.1, z_loss=0.01, reduction="none"
        ),
        (X, Q),
        lambda x, q: _shares(x, q, 0.1, 0.01),
    ),
    Sample(
        "cross_entropy-axis",
        lambda x, labels: ops.cross_entropy(x, labels, axis=0, reduction="sum"),
        (X,),
        lambda x, labels: np.sum(_shares(x.T, np.eye(3)[labels])),
        (np.array([0, 2, 1, 1]),),
    ),
    Sample(
        "kl_divergence",
        ops.kl_divergence,
        (X, Q),
        lambda x, q: np.mean(np.sum(q * (np.log(q) - sp.log_softmax(x, -1)), -1)),
    ),
    Sample(
        "binary",
        ops.binary_cross_entropy_with_logits,
        (X, Q),
        lambda x, t: np.mean(_binary(x, t)),
    ),
    Sample(
        "binary-weight",
        lambda x, t: ops.binary_cross_entropy_with_logits(
            x, t, pos_weight=3, reduction="none"
        ),
        (X, Q[0]),
        lambda x, t: _binary(x, t, 3),
    ),
    Sample("focal", ops.focal, (X,), lambda x, t: _focal(x, t, 2), (BITS,)),
    Sample(
        "focal-alpha",
        lambda x, t: ops.focal(x, t, gamma=1.5, alpha=0.25),
        (X,),
        lambda x, t: _focal(x, t, 1.5, 0.25),
        (BITS,),
    ),
    Sample(
        "huber",
        lambda x, t: ops.huber(x, t, delta=0.5, reduction="none"),
        (X, T[0]),
        lambda x, t: _huber(x, t, 0.5),
    ),
    Sample(
        "poisson_nll",
        ops.poisson_nll,
        (X, P),
        lambda x, t: np.mean(np.exp(x) - t * x),
    ),
    Sample("gaussian_nll", ops.gaussian_nll, (X, T, P), _gaussian),
]


def _hard(fn: Any) -> Any:
    """What is 1 at the greatest and 0 elsewhere, of a function's value."""

    def value(x: Any) -> Any:
        y = fn(x)
        return (y == y.max(-1, keepdims=True)).astype(float)

    return value


def _same(x: Any) -> Any:
    return x


def _soft(x: Any) -> Any:
    return ops.gumbel_softmax(x, 3)


SURROGATES = [
    Sample("reverse", lambda x: ops.reverse(x, 0.5), (X,), _same, (), lambda x: -x / 2),
    Sample("scale", lambda x: ops.scale(x, 3.0), (X,), _same, (), lambda x: 3 * x),
    Sample("round", ops.round, (X,), np.round, (), _same),
    Sample("floor", ops.floor, (X,), np.floor, (), _same),
    Sample("sign", ops.sign, (X,), np.sign, (), lambda x: gnp.clip(x, -1.0, 1.0)),
    Sample(
        "clamp",
        lambda x: ops.clamp(x, -0.5, 0.5),
        (X,),
        lambda x: np.clip(x, -0.5, 0.5),
        (),
        _same,
    ),
    Sample(
        "quantize",
        lambda x: ops.quantize(x, 2, 0.0, 3.0),
        (X,),
        lambda x: np.round(np.clip(x, 0, 3)),
        (),
        lambda x: gnp.clip(x, 0.0, 3.0),
    ),
    Sample(
        "one_hot_argmax",
        lambda x: ops.one_hot_argmax(x, temperature=0.5),
        (X,),
        _hard(_same),
        (),
        lambda x: gnp.special.softmax(2 * x, axis=-1),
    ),
    Sample(
        "gumbel_softmax",
        lambda x: ops.gumbel_softmax(x, 3, hard=True),
        (X,),
        _hard(_soft),
        (),
        _soft,
    ),
    Sample(
        "spike_fast_sigmoid",
        lambda x: ops.spike_fast_sigmoid(x, 0.5, 4.0),
        (X,),
        lambda x: (x >= 0.5).astype(float),
        (),
        lambda x: (x - 0.5) / (1 + 4 * gnp.abs(x - 0.5)),
    ),
    Sample(
        "spike_arctan",
        lambda x: ops.spike_arctan(x, 0.5, 2.0),
        (X,),
        lambda x: (x >= 0.5).astype(float),
        (),
        lambda x: gnp.arctan(np.pi * (x - 0.5)) / np.pi,
    ),
]
ALL = [*STABLE, *LOSSES, *SURROGATES]
