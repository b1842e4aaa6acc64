"""Twelve operations of everyday work, each written once, for the tests in all four."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import erfcx as scipy_erfcx

import gradsmith as gs
import gradsmith.numpy as gnp

_rng = np.random.default_rng(3)


@gs.custom_gradient
def cross_entropy(logits, labels, ignore_index=-100):
    """The mean over those labels that are not to be ignored."""
    kept = gnp.expand_dims(gnp.not_equal(labels, ignore_index), -1)
    places = gnp.where(kept, gnp.expand_dims(labels, -1), 0)
    n = gnp.astype(gnp.maximum(gnp.count_nonzero(kept), 1), logits.dtype)
    log_p = gnp.special.log_softmax(logits, axis=-1)
    picked = gnp.take_along_axis(log_p, places, axis=-1)

    def grad(dy):
        classes = gnp.arange(logits.shape[-1], like=logits)
        hot = gnp.astype(gnp.equal(places, classes), logits.dtype)
        return gnp.where(kept, (gnp.exp(log_p) - hot) * (dy / n), 0.0), None

    return -gnp.sum(gnp.where(kept, picked, 0.0)) / n, grad


@gs.operation
def layer_norm(x, gain, bias, eps=1e-5):
    return _normed(x, eps)[0] * gain + bias


def _normed(x, eps):
    scale = gnp.sqrt(gnp.var(x, axis=-1, keepdims=True) + eps)
    return (x - gnp.mean(x, axis=-1, keepdims=True)) / scale, scale


@layer_norm.vjp
def _(dy, y, x, gain, bias, eps):
    z, scale = _normed(x, eps)
    dz = dy * gain
    along = gnp.mean(dz, axis=-1, keepdims=True)
    across = z * gnp.mean(dz * z, axis=-1, keepdims=True)
    dx = (dz - along - across) / scale
    return dx, gs.unbroadcast(dy * z, gain.shape), gs.unbroadcast(dy, bias.shape)


@gs.custom_gradient(surrogate="gradient reversal")
def reversal(x, strength=0.5):
    return x * 1.0, lambda dy: -strength * dy


rounded = gs.with_gradient(gnp.round, lambda dy, y, x: dy, surrogate="straight-through")


@gs.operation
def safe_norm(x):
    return gnp.sqrt(gnp.sum(x * x, axis=-1))


@safe_norm.jvp
def _(dx, y, x):
    zero = gnp.equal(y, 0)
    return gnp.where(zero, 0.0, gnp.sum(x * dx, axis=-1) / gnp.where(zero, 1.0, y))


@gs.custom_gradient
def huber(x, delta=1.0):
    size = gnp.abs(x)
    y = gnp.where(size <= delta, x * x / 2, delta * (size - delta / 2))
    return y, lambda dy: dy * gnp.clip(x, -delta, delta)


@gs.operation
def log1mexp(x):
    """log(1 - exp(-x)) of a positive x, precise at both ends."""
    near = x < gnp.log(2.0)
    return gnp.where(
        near,
        gnp.log(-gnp.expm1(-gnp.where(near, x, 1.0))),
        gnp.log1p(-gnp.exp(-gnp.where(near, 1.0, x))),
    )


@log1mexp.vjp
def _(dy, y, x):
    return dy / gnp.expm1(x)


@gs.custom_gradient(surrogate="a wide bell instead of the spike's edge")
def spike(voltage, threshold=1.0):
    off = voltage - threshold
    y = gnp.astype(off > 0, voltage.dtype)
    return y, lambda dy: dy / (1 + (gnp.pi * off) ** 2)


@gs.custom_gradient(linear=False)
def clipped(x):
    return x * x, lambda dy: gnp.clip(2 * x * dy, -1.0, 1.0)


@gs.custom_gradient
def attention(q, k, v):
    scale = q.shape[-1] ** -0.5
    weights = gnp.special.softmax(gnp.einsum("id,jd->ij", q, k) * scale, axis=-1)

    def grad(dy):
        dv = gnp.matmul(gnp.transpose(weights), dy["mixed"])
        dw = gnp.matmul(dy["mixed"], gnp.transpose(v)) + dy["weights"]
        ds = weights * (dw - gnp.sum(dw * weights, axis=-1, keepdims=True)) * scale
        return gnp.matmul(ds, k), gnp.matmul(gnp.transpose(ds), q), dv

    return {"mixed": gnp.matmul(weights, v), "weights": weights}, grad


@gs.operation
def root_of_matrix(a):
    """The square root of a positive definite matrix."""
    values, vectors = gnp.linalg.eigh((a + gnp.matrix_transpose(a)) / 2)
    return gnp.matmul(vectors * gnp.sqrt(values), gnp.matrix_transpose(vectors))


@root_of_matrix.vjp
def _(dy, y, a):
    # y y = a, so that y da + da y = dy: a linear equation for all elements of da.
    n = y.shape[-1]
    one = gnp.eye(n, dtype=y.dtype, like=y)
    both = gnp.kron(y, one) + gnp.kron(one, y)
    even = (dy + gnp.matrix_transpose(dy)) / 2
    return gnp.reshape(gnp.linalg.solve(both, gnp.reshape(even, (n * n,))), (n, n))


@gs.python_op
def erfcx(x):
    """exp(x**2) * erfc(x): SciPy's compiled code."""
    return scipy_erfcx(x)


@erfcx.vjp
def _(dy, y, x):
    return (2 * x * y - 2 / math.sqrt(math.pi)) * dy


# How each is called. The arguments are floats, but for those in `fixed`.


@dataclass(frozen=True)
class Sample:
    op: Any
    xs: tuple[np.ndarray, ...]
    fixed: tuple[np.ndarray, ...] = ()
    # What its gradient is the derivative of, if not of its value.
    means: Callable[..., Any] | None = None
    linear: bool = True

    def __str__(self) -> str:
        return self.op.__name__


def _normal(*shape):
    return _rng.normal(size=shape)


_MATRIX = _normal(3, 3)
_LABELS = np.array([2, -100, 0, 1])
SAMPLES = [
    Sample(cross_entropy, (_normal(4, 3),), (_LABELS,)),
    Sample(layer_norm, (_normal(2, 5), _normal(5), _normal(5))),
    Sample(reversal, (_normal(3),), means=lambda x: -0.5 * x),
    Sample(rounded, (_normal(4),), means=lambda x: x),
    Sample(safe_norm, (_normal(2, 3),)),
    Sample(huber, (np.array([-3.0, -0.5, 0.2, 1.7]),)),
    Sample(log1mexp, (np.array([0.1, 0.5, 2.0, 30.0]),)),
    Sample(spike, (_normal(4),), means=lambda v: gnp.arctan(np.pi * (v - 1)) / np.pi),
    Sample(clipped, (np.array([0.2, -0.1, 0.3]),), linear=False),
    Sample(attention, (_normal(2, 3), _normal(4, 3), _normal(4, 2))),
    Sample(root_of_matrix, (_MATRIX @ _MATRIX.T + 3 * np.eye(3),)),
    Sample(erfcx, (np.array([-1.0, 0.3, 2.0]),)),
]
