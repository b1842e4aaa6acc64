"""Operations that draw random numbers: each draw is judged, the generators rewound."""

from __future__ import annotations

import random

import jax
import keras
import numpy as np
import pytest
import tensorflow as tf
import torch

import gradsmith as gs

from .helpers import native

X = np.random.default_rng(0).normal(size=(4, 6))


def masked(mask, factor=2.0):
    """An operation of ours that keeps what a random mask says."""

    @gs.custom_gradient
    def dropped(x):
        kept = mask(x.shape)
        return x * kept, lambda dy: factor / 2.0 * dy * kept

    return dropped


def by_numpy(shape):
    return 2.0 * (np.random.random(shape) < 0.5)


def by_python(shape):
    return np.array([random.choice([0.0, 2.0]) for _ in range(24)]).reshape(4, 6)


CAPTURED = np.random.default_rng(7)


def by_generator(shape):
    return 2.0 * (CAPTURED.random(shape) < 0.5)


@pytest.mark.parametrize("mask", [by_numpy, by_python, by_generator])
def test_generators_of_numpy_and_python(mask):
    report = gs.check(masked(mask), X)
    assert report.verdict == "right, with limits", report
    assert "the generators rewound" in str(report)
    assert gs.check(masked(mask, factor=3.0), X).verdict == "wrong"


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.kept = (torch.rand_like(x) < 0.5).to(x.dtype)
        return x * ctx.kept

    @staticmethod
    def backward(ctx, dy):
        return 2 * dy * ctx.kept


@pytest.mark.parametrize(
    "module",
    [
        torch.nn.Dropout(0.4),
        torch.nn.Dropout2d(0.4),
        torch.nn.AlphaDropout(0.4),
        torch.nn.RReLU(),
        torch.nn.Sequential(torch.nn.Linear(6, 3), torch.nn.Dropout(0.5)),
    ],
    ids=lambda module: type(module).__name__,
)
def test_modules_of_torch(module):
    report = gs.check(module, torch.tensor(X, dtype=torch.float32))
    assert report.verdict == "right, with limits", report
    assert [limit.what for limit in report.limits] == ["random"]


def test_a_wrong_rule_with_a_mask_is_wrong():
    assert gs.check(Doubled, torch.tensor(X)).verdict == "wrong"


@pytest.mark.parametrize(
    "layer",
    [
        lambda x: tf.nn.dropout(x, 0.4),
        lambda x: x * tf.random.normal([4, 6], dtype=x.dtype),
        keras.layers.Dropout(0.4),
    ],
    ids=["dropout", "normal", "keras"],
)
def test_tensorflow(layer):
    call = layer
    if isinstance(layer, keras.layers.Layer):
        call = lambda x: layer(x, training=True)
    report = gs.check(call, tf.constant(X))
    assert report.verdict == "right, with limits", report


def test_a_wrong_rule_beside_randomness_in_tensorflow():
    sine = native("tensorflow", tf.sin, lambda dy, y, x: 3 * dy * tf.cos(x))
    report = gs.check(lambda x: sine(tf.nn.dropout(x, 0.4)), tf.constant(X))
    assert report.verdict == "wrong"


def test_keys_of_jax_are_arguments():
    key = jax.random.key(0)
    noisy = lambda x: x * jax.random.bernoulli(key, 0.5, x.shape)
    assert gs.check(noisy, jax.numpy.asarray(X)).verdict == "right"
