"""`unbroadcast` and `stop_gradient`, which rules need, in every framework."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import gradsmith as gs
import gradsmith.numpy as gnp

from .harness import FRAMEWORKS, NATIVE, plain

each_framework = pytest.mark.parametrize("framework", FRAMEWORKS)
both = pytest.mark.parametrize("unbroadcast", [gs.unbroadcast, gnp.unbroadcast])


@both
@each_framework
def test_unbroadcast(framework, unbroadcast):
    dy = NATIVE[framework](np.arange(24.0).reshape(2, 3, 4))
    for shape in ((2, 3, 4), (3, 1), (4,), (1, 1, 4), ()):
        wanted = gs.unbroadcast(np.arange(24.0).reshape(2, 3, 4), shape)
        dx = unbroadcast(dy, shape)
        np.testing.assert_array_equal(plain(dx), wanted)
        assert type(dx) is type(dy)
    native = NATIVE[framework](np.ones((3, 1)))
    assert plain(unbroadcast(dy, native.shape)).shape == (3, 1)


@both
def test_unbroadcast_in_a_graph_with_open_lengths(unbroadcast):
    spec = [tf.TensorSpec([None, None]), tf.TensorSpec([None, 3])]

    @tf.function(input_signature=spec)
    def run(dy, x):
        return unbroadcast(dy, gnp.shape(x)), unbroadcast(dy, tf.shape(x))

    dy = tf.ones((4, 3))
    for x in (tf.ones((1, 3)), tf.ones((4, 3))):
        for dx in run(dy, x):
            np.testing.assert_array_equal(dx, np.ones(x.shape) * (4 // len(x)))


def test_unbroadcast_to_a_shape_that_is_known():
    @tf.function(input_signature=[tf.TensorSpec([None, None])])
    def run(dy):
        return gs.unbroadcast(dy, (3,))

    np.testing.assert_array_equal(run(tf.ones((4, 3))), [4, 4, 4])


def test_unbroadcast_does_not_guess_open_lengths():
    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def run(x):
        return gs.unbroadcast(x, x.shape)

    with pytest.raises(gs.GradsmithError, match=r"gnp\.shape\(x\)"):
        run(tf.ones((4, 3)))


@pytest.mark.parametrize("stop", [gs.stop_gradient, gnp.stop_gradient])
def test_stop_gradient(stop):
    x = tf.constant(3.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * stop(x)
    assert float(tape.gradient(y, x)) == 3
    assert float(jax.grad(lambda x: x * stop(x))(3.0)) == 3
    assert float(jax.jit(jax.grad(lambda x: x * stop({"a": x})["a"]))(3.0)) == 3
    x = torch.tensor(3.0, requires_grad=True)
    assert float(torch.autograd.grad(x * stop([x, 1])[0], x)[0]) == 3
    assert float(gs.grad(lambda x: x * stop(x))(3.0)) == 3
    assert float(gs.grad(lambda x: x * stop((x, "words"))[0])(3.0)) == 3


def test_stop_gradient_keeps_what_is_no_array():
    tree = {"a": jnp.ones(2), "b": "words", "c": [1, None], "d": np.ones(2)}
    stopped = gs.stop_gradient(tree)
    assert stopped["b"] == "words"
    assert stopped["c"] == [1, None]
    assert isinstance(stopped["a"], jax.Array)


def test_under_torch_compile():
    def run(x):
        return gs.unbroadcast(gs.stop_gradient(x) * x, (3,))

    y = torch.compile(run, fullgraph=True, backend="eager")(torch.ones(4, 3))
    assert y.tolist() == [4, 4, 4]
