"""Losses: a scalar, or one value per row."""

from __future__ import annotations

from math import prod
from typing import Any

import gradsmith.numpy as gnp

from ..inputs import index, positive, real, unit
from ..operation import define


def size(x: Any) -> int:
    return prod(gnp.shape(x))


@define("loss", real("nm"), real("nm"))
def mse(x: Any, t: Any) -> Any:
    return gnp.mean((x - t) ** 2)


@mse.gradient
def _(dy: Any, y: Any, x: Any, t: Any) -> Any:
    dx = dy * 2 * (x - t) / size(x)
    return dx, -dx


@mse.variant("dropped term")
def _(dy: Any, y: Any, x: Any, t: Any) -> Any:
    return dy * 2 * x / size(x), dy * 2 * (t - x) / size(x)


@define("loss", real("nm"), index("n", below=4))
def cross_entropy(x: Any, labels: Any) -> Any:
    hot = _one_hot(labels, x)
    return gnp.mean(gnp.special.logsumexp(x, axis=1) - gnp.sum(hot * x, axis=1))


def _one_hot(labels: Any, x: Any) -> Any:
    classes = gnp.arange(gnp.shape(x)[1], dtype=labels.dtype, like=labels)
    return gnp.astype(gnp.equal(gnp.expand_dims(labels, -1), classes), x.dtype)


@cross_entropy.gradient
def _(dy: Any, y: Any, x: Any, labels: Any) -> Any:
    p = gnp.special.softmax(x, axis=1)
    return dy * (p - _one_hot(labels, x)) / gnp.shape(x)[0], None


@cross_entropy.variant("dropped term")
def _(dy: Any, y: Any, x: Any, labels: Any) -> Any:
    return dy * gnp.special.softmax(x, axis=1) / gnp.shape(x)[0], None


@cross_entropy.variant("wrong axis")
def _(dy: Any, y: Any, x: Any, labels: Any) -> Any:
    p = gnp.special.softmax(x, axis=0)
    return dy * (p - _one_hot(labels, x)) / gnp.shape(x)[0], None


@cross_entropy.variant("overflow")
def _(dy: Any, y: Any, x: Any, labels: Any) -> Any:
    e = gnp.exp(x)
    p = e / gnp.sum(e, axis=1, keepdims=True)
    return dy * (p - _one_hot(labels, x)) / gnp.shape(x)[0], None


@define("loss", real("nm"), unit("nm"))
def bce_with_logits(x: Any, t: Any) -> Any:
    return gnp.mean(gnp.maximum(x, 0) - x * t + gnp.log1p(gnp.exp(-gnp.abs(x))))


@bce_with_logits.gradient
def _(dy: Any, y: Any, x: Any, t: Any) -> Any:
    return dy * (gnp.special.expit(x) - t) / size(x), -dy * x / size(x)


@bce_with_logits.variant("dropped term")
def _(dy: Any, y: Any, x: Any, t: Any) -> Any:
    return dy * gnp.special.expit(x) / size(x), -dy * x / size(x)


@bce_with_logits.variant("overflow")
def _(dy: Any, y: Any, x: Any, t: Any) -> Any:
    e = gnp.exp(x)
    return dy * (e / (1 + e) - t) / size(x), -dy * x / size(x)


@define("loss", positive("nm"), positive("nm"))
def kl_divergence(p: Any, q: Any) -> Any:
    return gnp.sum(p * (gnp.log(p) - gnp.log(q)), axis=1)


@kl_divergence.gradient
def _(dy: Any, y: Any, p: Any, q: Any) -> Any:
    dy = gnp.expand_dims(dy, -1)
    return dy * (gnp.log(p) - gnp.log(q) + 1), -dy * p / q


@kl_divergence.variant("dropped term")
def _(dy: Any, y: Any, p: Any, q: Any) -> Any:
    dy = gnp.expand_dims(dy, -1)
    return dy * (gnp.log(p) - gnp.log(q)), -dy * p / q


@kl_divergence.variant("wrong axis")
def _(dy: Any, y: Any, p: Any, q: Any) -> Any:
    return dy * (gnp.log(p) - gnp.log(q) + 1), -dy * p / q


@define("loss", real("nm"), real("nm"))
def hinge(s: Any, t: Any) -> Any:
    return gnp.mean(gnp.maximum(1 - t * s, 0))


@hinge.gradient
def _(dy: Any, y: Any, s: Any, t: Any) -> Any:
    inside = gnp.astype(t * s < 1, s.dtype)
    return -dy * t * inside / size(s), -dy * s * inside / size(s)


@hinge.variant("dropped term")
def _(dy: Any, y: Any, s: Any, t: Any) -> Any:
    return -dy * t / size(s), -dy * s / size(s)


@define("loss", real("nm"), real("nm"))
def huber_loss(x: Any, t: Any) -> Any:
    d = gnp.abs(x - t)
    return gnp.sum(gnp.where(d < 1, 0.5 * d * d, d - 0.5), axis=1)


@huber_loss.gradient
def _(dy: Any, y: Any, x: Any, t: Any) -> Any:
    dx = gnp.expand_dims(dy, -1) * gnp.clip(x - t, -1.0, 1.0)
    return dx, -dx


@huber_loss.variant("wrong axis")
def _(dy: Any, y: Any, x: Any, t: Any) -> Any:
    dx = dy * gnp.clip(x - t, -1.0, 1.0)
    return dx, -dx


@huber_loss.variant("approximation")
def _(dy: Any, y: Any, x: Any, t: Any) -> Any:
    dx = gnp.expand_dims(dy, -1) * gnp.tanh(x - t)
    return dx, -dx
