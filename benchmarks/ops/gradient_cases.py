"""Shaped gradients, straight-through estimators and spikes: the same rule by hand."""

from __future__ import annotations

from math import pi
from typing import Any

import gradsmith.numpy as gnp
from benchmarks.ops.cases import Case, _named
from gradsmith import ops


def _same(x: Any) -> Any:
    return x * 1.0


def _clipped_by_norm(dy: Any, x: Any) -> Any:
    size = gnp.sqrt(gnp.sum(dy * dy))
    return dy * gnp.minimum(1 / size, 1.0)


def _levels(x: Any) -> Any:
    return gnp.round((gnp.clip(x, -1.0, 1.0) + 1) * 7.5) / 7.5 - 1


def _one_hot(x: Any) -> Any:
    place = gnp.expand_dims(gnp.argmax(x, axis=-1), -1)
    return gnp.astype(gnp.equal(gnp.arange(x.shape[-1], like=x), place), x.dtype)


def _through_softmax(dy: Any, x: Any) -> Any:
    y = gnp.special.softmax(x, axis=-1)
    return y * (dy - gnp.sum(dy * y, axis=-1, keepdims=True))


def _step(x: Any) -> Any:
    return gnp.astype(x >= 1.0, x.dtype)


def _through(dy: Any, x: Any) -> Any:
    return dy


GRADIENTS = [
    Case("reverse", ops.reverse, _same, gradient=lambda dy, x: -dy),
    Case("scale", lambda x: ops.scale(x, 0.5), _same, gradient=lambda dy, x: dy * 0.5),
    Case(
        "clip_by_value",
        lambda x: ops.clip_by_value(x, -0.5, 0.5),
        _same,
        gradient=lambda dy, x: gnp.clip(dy, -0.5, 0.5),
    ),
    Case(
        "clip_by_norm",
        lambda x: ops.clip_by_norm(x, 1.0),
        _same,
        gradient=_clipped_by_norm,
    ),
    Case(
        "nan_to_zero",
        ops.nan_to_zero,
        _same,
        gradient=lambda dy, x: gnp.where(gnp.isnan(dy), 0.0, dy),
    ),
    Case("round", ops.round, lambda x: gnp.round(x), gradient=_through),
    Case("floor", ops.floor, gnp.floor, gradient=_through),
    Case(
        "sign",
        ops.sign,
        gnp.sign,
        gradient=lambda dy, x: gnp.where(gnp.abs(x) <= 1, dy, 0.0),
    ),
    Case(
        "clamp",
        lambda x: ops.clamp(x, -1.0, 1.0),
        lambda x: gnp.clip(x, -1.0, 1.0),
        gradient=_through,
    ),
    Case(
        "quantize",
        lambda x: ops.quantize(x, 4),
        _levels,
        gradient=lambda dy, x: gnp.where(gnp.abs(x) <= 1, dy, 0.0),
    ),
    Case("one_hot_argmax", ops.one_hot_argmax, _one_hot, gradient=_through_softmax),
    Case(
        "spike_fast_sigmoid",
        ops.spike_fast_sigmoid,
        _step,
        gradient=lambda dy, x: dy / (1 + 25 * gnp.abs(x - 1)) ** 2,
    ),
    Case(
        "spike_arctan",
        ops.spike_arctan,
        _step,
        gradient=lambda dy, x: dy / (1 + (pi * (x - 1)) ** 2),
    ),
    # These draw random numbers: the same in every framework, and by its own generator.
    Case(
        "noise",
        lambda x: ops.noise(x, 3),
        None,
        _named(
            tf=lambda tf, x: _tf_noise(tf)(x),
            jax=lambda jax, x: _jax_noise(jax)(x),
            torch=lambda torch, x: _torch_noise(torch)(x),
        ),
    ),
    Case(
        "gumbel_softmax",
        lambda x: ops.gumbel_softmax(x, 3),
        None,
        _named(
            tf=lambda tf, x: tf.nn.softmax(
                x - tf.math.log(-tf.math.log(_tf_uniform(tf, x)))
            ),
            jax=lambda jax, x: jax.nn.softmax(
                x + jax.random.gumbel(jax.random.key(3), x.shape)
            ),
            torch=lambda torch, x: torch.nn.functional.gumbel_softmax(x),
        ),
    ),
]


def _tf_uniform(tf: Any, x: Any) -> Any:
    return tf.random.stateless_uniform(x.shape, (3, 0), minval=1e-7)


def _tf_noise(tf: Any) -> Any:
    @tf.custom_gradient
    def op(x: Any) -> Any:
        return x, lambda dy: dy + tf.random.stateless_normal(x.shape, (3, 0))

    return op


def _jax_noise(jax: Any) -> Any:
    @jax.custom_vjp
    def op(x: Any) -> Any:
        return x

    key = jax.random.key(3)
    noise = lambda dy: jax.random.normal(key, dy.shape)
    op.defvjp(lambda x: (x, None), lambda _, dy: (dy + noise(dy),))
    return op


def _torch_noise(torch: Any) -> Any:
    class Noise(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, dy: Any) -> Any:
            return dy + torch.randn_like(dy)

    return Noise.apply
