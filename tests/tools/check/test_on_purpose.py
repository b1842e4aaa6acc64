"""What looks like a surrogate and is none: a mistake beside it is not excused."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import gradsmith as gs

X = torch.tensor([[0.6, -1.2, 0.3], [-0.4, 2.1, -0.7]])
POSITIVE = X.abs() + 0.1


def rule(forward, backward):
    class Rule(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx, dy):
            return backward(dy, *ctx.saved_tensors)

    return Rule.apply


right = rule(torch.exp, lambda dy, x: dy * x.exp())
wrong = rule(torch.exp, lambda dy, x: 2 * dy * x.exp())


def by_its_norm(x):
    y = right(x)
    return y / y.norm().detach()


def off_its_greatest(x):
    m = x.detach().max()
    return wrong(x - m) * m.exp()


def rounded(x):
    return x + (x.round() - x).detach()


def without_gradients(x):
    with torch.no_grad():
        size = x.norm()
    return x / size


def through_numpy(x):
    return x * torch.from_numpy(np.sin(x.detach().numpy()))


def an_option(x, detach=False):
    return x * torch.tensor(x.tolist())


def named(x):
    """No detach, and no stop_gradient."""
    return x * x.data  # nor no_grad


@pytest.mark.parametrize(
    ("fn", "verdict"),
    [
        (by_its_norm, "surrogate"),
        (rounded, "surrogate"),
        (without_gradients, "surrogate"),
        (off_its_greatest, "wrong"),
        (through_numpy, "wrong"),
        (an_option, "wrong"),
        (named, "wrong"),
    ],
)
def test_stopped_gradients_excuse_nothing_else(fn, verdict):
    assert gs.check(fn, X).verdict == verdict


@jax.custom_vjp
def doubled(x):
    return jnp.exp(x)


doubled.defvjp(lambda x: (jnp.exp(x), x), lambda x, dy: (2 * dy * jnp.exp(x),))


def test_stopped_gradients_in_jax_also_where_they_are_compiled():
    x = jnp.asarray(X.numpy())
    meant = jax.jit(lambda x: jax.nn.relu(x) / jax.lax.stop_gradient(jnp.max(x)))
    hidden = jax.jit(lambda x: doubled(x - jax.lax.stop_gradient(jnp.max(x))))
    assert gs.check(meant, x).verdict == "surrogate"
    assert gs.check(hidden, x).verdict == "wrong"


def test_stopped_gradients_in_tensorflow():
    @tf.custom_gradient
    def exp(x):
        return tf.exp(x), lambda dy: 2 * dy * tf.exp(x)

    x = tf.constant(X.numpy())
    meant = tf.function(lambda x: x / tf.stop_gradient(tf.reduce_max(x)))
    hidden = lambda x: exp(x - tf.stop_gradient(tf.reduce_max(x)))
    assert gs.check(meant, x).verdict == "surrogate"
    assert gs.check(hidden, x).verdict == "wrong"


UPSTREAM = {
    "masked by dy in place of x": (
        lambda x: x.clamp(0, 6), lambda dy, x: dy.clamp(min=0), X, "wrong"
    ),
    "guided": (
        torch.relu, lambda dy, x: dy.clamp(min=0) * (x > 0), X, "surrogate"
    ),
    "rectified, wrong below zero": (
        torch.square, lambda dy, x: dy.clamp(min=0) * 2 * x.abs(), POSITIVE, "wrong"
    ),
    "masked, of another value": (
        torch.exp, lambda dy, x: torch.where(dy * x > 0, dy, 0.0), X, "wrong"
    ),
    "clipped": (
        torch.exp, lambda dy, x: dy.clamp(-1, 1) * x.exp(), X, "surrogate"
    ),
    "clipped, and doubled": (
        torch.exp, lambda dy, x: 2 * dy.clamp(-1, 1) * x.exp(), X, "wrong"
    ),
    "clipped as it comes out": (
        torch.exp, lambda dy, x: (dy * x.exp()).clamp(-1, 1), X, "surrogate"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UPSTREAM)
def test_what_is_done_to_dy_excuses_nothing_else(name):
    forward, backward, x, verdict = UPSTREAM[name]
    assert gs.check(rule(forward, backward), x).verdict == verdict


def test_a_rule_that_clips_is_no_mistake_in_little_time_either():
    op = rule(*UPSTREAM["clipped"][:2])
    assert gs.check.options(seconds=3)(op, X).verdict == "surrogate"


@pytest.mark.parametrize(
    ("forward", "verdict"),
    [
        (lambda x: torch.relu(x - 500), "wrong"),
        (lambda x: (x > 100).to(x.dtype), "surrogate"),
        (lambda x: torch.round(x / 300), "surrogate"),
    ],
)
def test_what_changes_far_away_has_to_jump_there(forward, verdict):
    op = rule(forward, lambda dy, x: dy * torch.sigmoid(x))
    assert gs.check(op, X).verdict == verdict


def test_a_variable_that_is_called_as_a_surrogate_is():
    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ste = torch.tanh(x)
            ctx.save_for_backward(ste, x)
            return ste * x

        @staticmethod
        def backward(ctx, dy):
            ste, x = ctx.saved_tensors
            return dy * (ste + x * (1 - ste))  # forgot the square

    assert gs.check(Op.apply, X).verdict == "wrong"
