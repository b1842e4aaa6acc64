"""gs.checkpoint and gs.checkpoint_scan on TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.tools.checkpoint.schedule import forward_steps

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

X = tf.constant(np.linspace(0.1, 1.0, 5))
W = tf.Variable(np.linspace(1.0, 2.0, 5))


def loss(wrap):
    """With keyword arguments, trees, and a captured variable and tensor."""

    def total(x):
        captured = tf.reduce_sum(x)

        def inside(x, scale=1.0, more=None, mode="a"):
            b = [tf.exp(x) * more["k"] * captured, 3, mode]
            return {"a": tf.sin(x) * scale * W, "b": b}

        y = wrap(inside)(x, scale=2.0, more={"k": x * x}, mode="b")
        assert y["b"][1:] == [3, "b"]
        return tf.reduce_sum(y["a"] ** 2 + y["b"][0])

    return total


def gradients(f, x=X):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tf.concat(tape.gradient(y, [x, W]), 0)


def second(f):
    with tf.GradientTape() as tape:
        tape.watch(X)
        z = tf.reduce_sum(gradients(f) ** 2)
    return tf.concat(tape.gradient(z, [X, W]), 0)


def tangent(f):
    primals, tangents = [X, W], [X, tf.ones_like(W)]
    with tf.autodiff.ForwardAccumulator(primals, tangents) as accumulator:
        y = f(X)
    return accumulator.jvp(y)


def forward_over_reverse(f):
    with tf.autodiff.ForwardAccumulator(X, X) as accumulator:
        dx = gradients(f)
    return accumulator.jvp(dx)


DERIVATIVES = {
    "eager": gradients,
    "eager, twice": second,
    "forward": tangent,
    "forward over reverse": forward_over_reverse,
    "in a function": lambda f: tf.function(gradients)(f),
    "in a function, twice": lambda f: tf.function(second)(f),
    "of a function": lambda f: gradients(tf.function(f)),
    "of a function, twice": lambda f: second(tf.function(f)),
    "XLA": lambda f: tf.function(gradients, jit_compile=True)(f),
}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_derivatives_are_those_of_the_function(name):
    derive = DERIVATIVES[name]
    plain, ours = (derive(loss(wrap)) for wrap in (lambda f: f, gs.checkpoint))
    np.testing.assert_allclose(ours, plain, rtol=1e-13)


def test_in_a_loop_of_a_graph():
    @tf.function
    def run(wrap):
        inside = wrap(lambda y: tf.sin(y) * W)
        with tf.GradientTape() as tape:
            tape.watch(X)
            y = X
            for _ in tf.range(4):
                y = inside(y)
        return tf.concat(tape.gradient(y, [X, W]), 0)

    np.testing.assert_array_equal(run(gs.checkpoint), run(lambda f: f))


MODES = {
    "eager": lambda f: gradients(f),
    "in a function": lambda f: tf.function(lambda: gradients(f))(),
    "of a function": lambda f: gradients(tf.function(f)),
}


@pytest.mark.parametrize("mode", MODES)
def test_randomness_is_replayed_and_goes_on(mode):
    found = []
    for wrap in (lambda f: f, gs.checkpoint):
        tf.random.set_seed(1)
        rng = tf.random.Generator.from_seed(3)

        def noisy(x, rng=rng):
            noise = tf.random.normal([5], dtype=x.dtype) * rng.normal(
                [5], dtype=x.dtype
            )
            return tf.reduce_sum(tf.nn.dropout(tf.sin(x) * noise * W, 0.5))

        dx = MODES[mode](wrap(noisy))
        after = rng.uniform([]), tf.random.uniform([])
        found.append((dx.numpy().tolist(), *(each.numpy() for each in after)))
    assert found[0] == found[1]


@pytest.mark.parametrize("mode", ["eager", "in a function", "of a function"])
def test_keras_layers_with_dropout_and_batch_statistics(mode):
    found, x = [], tf.reshape(tf.range(18.0), (6, 3))
    for wrap in (lambda f: f, gs.checkpoint):
        keras.utils.set_random_seed(0)
        norm, drop = keras.layers.BatchNormalization(), keras.layers.Dropout(0.5)
        dense = keras.layers.Dense(4)
        model = keras.Sequential([dense, norm, drop, keras.layers.Dense(1)])
        model.build((6, 3))
        inside = wrap(model)

        def total(x, inside=inside):
            return tf.reduce_sum(inside(x, training=True) ** 2)

        def run(model=model, total=total):
            with tf.GradientTape() as tape:
                y = (tf.function(total) if mode == "of a function" else total)(x)
            return tape.gradient(y, model.trainable_variables)

        dw = (tf.function(run) if mode == "in a function" else run)()
        state = norm.moving_mean.numpy().tolist(), drop.seed_generator.state.numpy()
        found.append(([each.numpy() for each in dw], *map(np.asarray, state)))
    for plain, ours in zip(found[0][0], found[1][0], strict=True):
        # Sums over the batch are fused in another way.
        np.testing.assert_allclose(ours, plain, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(found[1][1], found[0][1])
    np.testing.assert_array_equal(found[1][2], found[0][2])


def test_verify():
    n = [0]

    def counting(x):
        n[0] += 1
        return tf.reduce_sum(x * W * n[0])

    with pytest.raises(gs.GradsmithError, match="'counting' computes something else"):
        gradients(gs.checkpoint(counting, verify=True))
    found = []
    for verify in (False, True):
        tf.random.set_seed(1)
        noisy = lambda x: tf.sin(x) * W * tf.random.normal([5], dtype=X.dtype)
        dx = gradients(gs.checkpoint(noisy, verify=verify))
        found.append((dx.numpy().tolist(), tf.random.uniform([]).numpy()))
    assert found[0] == found[1]
    with pytest.raises(gs.GradsmithError, match=r"which a tf\.function does"):
        tf.function(lambda: gradients(gs.checkpoint(noisy, verify=True)))()


def test_a_scan_is_the_loop_in_revolves_number_of_steps():
    n = [0]

    def step(s, i):
        n[0] += 1
        return {"u": s["u"] + 0.1 * tf.sin(s["v"] * W) * float(i), "v": s["v"] * 0.9}

    def ours(u):
        s = gs.checkpoint_scan(step, {"u": u, "v": u}, 20, snapshots=3)
        return tf.reduce_sum(s["u"] * s["v"])

    def loop(u):
        s = {"u": u, "v": u}
        for i in range(20):
            s = step(s, i)
        return tf.reduce_sum(s["u"] * s["v"])

    expected = gradients(loop)
    n[0] = 0
    np.testing.assert_allclose(gradients(ours), expected, rtol=1e-13)
    assert n[0] == forward_steps(20, 3)
    np.testing.assert_allclose(tf.function(gradients)(ours), expected, rtol=1e-13)


def test_a_keras_tensor_has_no_values():
    with pytest.raises(gs.GradsmithError, match="was given a KerasTensor"):
        gs.checkpoint(keras.layers.Dense(2))(keras.Input((3,)))


class Penalized(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(2, activity_regularizer="l2")

    def call(self, x):
        self.add_loss(tf.reduce_sum(x**3))
        return self.dense(x)


class Around(keras.Model):
    """Calls one layer twice: the losses of the first call stay what they are."""

    def __init__(self, wrap):
        super().__init__()
        self.inside = Penalized()
        self.block = wrap(self.inside)

    def call(self, x):
        return self.block(self.block(x))


@pytest.mark.parametrize(
    ("mode", "verify"),
    [(lambda f: f, False), (lambda f: f, True), (tf.function, False)],
)
def test_losses_that_layers_add_have_their_gradient(mode, verify):
    found = []
    for wrap in (lambda f: f, lambda f: gs.checkpoint(f, verify=verify)):
        keras.utils.set_random_seed(0)
        model, x = Around(wrap), tf.constant([[0.5, 1.0]])
        model(x)

        @mode
        def total(x, model=model):
            y = tf.reduce_sum(model(x))
            assert len(model.losses) == 4
            return y + tf.add_n(model.losses)

        with tf.GradientTape() as tape:
            tape.watch(x)
            y = total(x)
        dx, *dw = tape.gradient(y, [x, *model.trainable_variables])
        found.append([y, dx, *dw])
    for plain, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, plain, rtol=1e-5)
