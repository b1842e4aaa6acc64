"""The losses, mean over all, beside the frameworks' own."""

from __future__ import annotations

from typing import Any

import gradsmith.numpy as gnp
from benchmarks.ops.cases import Case, _named
from gradsmith import ops


def _log_p(x: Any) -> Any:
    return gnp.special.log_softmax(x, axis=-1)


def _picked(x: Any, labels: Any) -> Any:
    return -gnp.mean(gnp.take_along_axis(_log_p(x), labels[:, None], axis=-1))


def _tf_mean(tf: Any, rows: Any) -> Any:
    return tf.reduce_mean(rows)


def _binary(x: Any, t: Any) -> Any:
    p = 1 / (1 + gnp.exp(-x))
    return gnp.mean(-t * gnp.log(p) - (1 - t) * gnp.log(1 - p))


def _stable_binary(x: Any, t: Any) -> Any:
    return gnp.mean(gnp.maximum(x, 0) - x * t + gnp.log1p(gnp.exp(-gnp.abs(x))))


def _huber(x: Any, t: Any) -> Any:
    size = gnp.abs(x - t)
    return gnp.mean(gnp.where(size <= 1, size * size / 2, size - 0.5))


def _focal(x: Any, t: Any) -> Any:
    p = 1 / (1 + gnp.exp(-x))
    right = p * t + (1 - p) * (1 - t)
    return gnp.mean(-((1 - right) ** 2) * gnp.log(right))


def _gaussian(x: Any, t: Any, v: Any) -> Any:
    return gnp.mean((gnp.log(v) + (x - t) ** 2 / v) / 2)


LOSSES = [
    Case(
        "cross_entropy",
        ops.cross_entropy,
        _picked,
        _named(
            tf=lambda tf, x, labels: _tf_mean(
                tf, tf.nn.sparse_softmax_cross_entropy_with_logits(labels, x)
            ),
            torch=lambda torch, x, labels: torch.nn.functional.cross_entropy(x, labels),
        ),
        "xl",
        floats=1,
    ),
    Case(
        "cross_entropy, smoothed shares",
        lambda x, q: ops.cross_entropy(x, q, label_smoothing=0.1),
        lambda x, q: (
            -gnp.mean(gnp.sum((0.9 * q + 0.1 / q.shape[-1]) * _log_p(x), axis=-1))
        ),
        _named(
            torch=lambda torch, x, q: torch.nn.functional.cross_entropy(
                x, q, label_smoothing=0.1
            ),
        ),
        "xq",
        floats=1,
    ),
    Case(
        "kl_divergence",
        ops.kl_divergence,
        lambda x, q: gnp.mean(gnp.sum(q * (gnp.log(q) - _log_p(x)), axis=-1)),
        inputs="xq",
        floats=1,
    ),
    Case(
        "binary_cross_entropy_with_logits",
        ops.binary_cross_entropy_with_logits,
        _binary,
        _named(
            tf=lambda tf, x, t: _tf_mean(
                tf, tf.nn.sigmoid_cross_entropy_with_logits(t, x)
            ),
            jax=lambda jax, x, t: _stable_binary(x, t),
            torch=lambda torch, x, t: (
                torch.nn.functional.binary_cross_entropy_with_logits(x, t)
            ),
        ),
        "xb",
        floats=1,
    ),
    Case("focal", ops.focal, _focal, inputs="xb", floats=1),
    Case(
        "huber",
        ops.huber,
        _huber,
        _named(torch=lambda torch, x, t: torch.nn.functional.huber_loss(x, t)),
        "xx",
        floats=1,
    ),
    Case(
        "poisson_nll",
        ops.poisson_nll,
        lambda x, t: gnp.mean(gnp.exp(x) - t * x),
        _named(torch=lambda torch, x, t: torch.nn.functional.poisson_nll_loss(x, t)),
        "xp",
        floats=1,
    ),
    Case(
        "gaussian_nll",
        ops.gaussian_nll,
        _gaussian,
        inputs="xxp",
    ),
]
