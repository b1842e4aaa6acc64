"""What a second run finds on TensorFlow: generators and variables as they were."""

from __future__ import annotations

import random

import numpy as np
import pytest

import gradsmith as gs

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

X = tf.constant(np.linspace(0.5, 2.0, 60).reshape(20, 3))


def value_and_gradient(f, x=X):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(f(x))
    return float(y), tape.gradient(y, x)


def require_degree_two(f, x=X):
    """Whatever f draws, it is of degree 2: the gradient times x is twice the value."""
    y, dx = value_and_gradient(f, x)
    np.testing.assert_allclose(tf.reduce_sum(dx * x), 2 * y, rtol=1e-6)


RNG = np.random.default_rng(0)
DRAWS = {
    "NumPy": lambda shape: np.random.rand(*shape),
    "NumPy, captured": lambda shape: RNG.random(shape),
    "Python": lambda shape: random.random(),
}


@pytest.mark.parametrize("verify", [False, True])
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_python_generators_are_replayed_and_go_on(draw, verify):
    found = []
    for wrap in (lambda f: f, lambda f: gs.checkpoint(f, verify=verify)):
        random.seed(0)
        np.random.seed(0)
        RNG.bit_generator.state = np.random.default_rng(0).bit_generator.state
        y, dx = value_and_gradient(wrap(lambda x: x * x * draw(x.shape)))
        found.append((y, dx.numpy().tolist(), np.mean(draw((2, 2)))))
    assert found[0] == found[1]


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_python_generators_are_replayed_in_functions_and_scans(draw):
    def step(x):
        return x * draw(x.shape)

    def scan(x):
        return x * gs.checkpoint_scan(step, x, 6, snapshots=2)

    require_degree_two(tf.function(gs.checkpoint(lambda x: x * step(x))))
    require_degree_two(scan)
    require_degree_two(tf.function(scan))


def drop(x):
    return tf.nn.dropout(x, 0.5) * x


class Layer:
    def __init__(self):
        self.count = tf.Variable(0)

    @tf.function
    def __call__(self, x):
        self.count.assign_add(1)
        return drop(x)


def traced():
    """A function that was traced before, with numbers and an assignment in it."""
    layer = Layer()
    layer(X)
    return layer.count, lambda x: layer(x) * 1.0, layer.__call__


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function])
def test_traced_functions_may_be_checkpointed_and_called_in_blocks(wrap):
    count, around, itself = traced()
    for f in (around, itself):
        before = int(count)
        require_degree_two(wrap(gs.checkpoint(f)))
        assert int(count) == before + 1
    require_degree_two(gs.checkpoint(itself, verify=True))
    assert int(count) == before + 2


def test_a_checkpointed_function_stays_compiled():
    runs = []

    @tf.function(input_signature=[tf.TensorSpec((None, 3), tf.float64)])
    def f(x):
        runs.append(1)
        return drop(x)

    light = gs.checkpoint(f)
    for _ in range(3):
        require_degree_two(light)
    assert len(runs) == 2  # traced once for each pass


def test_a_traced_function_without_state_is_called_as_it_is():
    runs = []

    @tf.function
    def f(x):
        runs.append(1)
        return x * x

    for _ in range(3):
        require_degree_two(gs.checkpoint(lambda x: f(x) * 2.0))
    assert len(runs) == 1


def test_functions_without_python_code_are_refused_if_they_have_state():
    random, plain = (tf.function(f).get_concrete_function(X) for f in (drop, tf.square))
    require_degree_two(gs.checkpoint(plain))
    for f in (random, lambda x: random(x) * 2.0):
        np.testing.assert_array_equal(gs.checkpoint(f)(X).shape, X.shape)
        for wrap in (lambda f: f, tf.function):
            with pytest.raises(gs.GradsmithError, match="was traced before and has no"):
                require_degree_two(wrap(gs.checkpoint(f)))


def test_raw_operations_are_replayed():
    draw = lambda: tf.raw_ops.RandomUniform(shape=[20, 3], dtype=tf.float64)
    require_degree_two(gs.checkpoint(lambda x: x * x * draw()))


def looping(body):
    def around(x):
        y = tf.zeros_like(x)
        for _ in tf.range(3):
            y += body(x)
        return y

    return around


def branching(body):
    def around(x):
        if tf.reduce_sum(x) > 0:
            x = body(x)
        return x

    return around


@pytest.mark.parametrize("around", [looping, branching])
def test_autograph_reaches_checkpointed_functions(around):
    step = around(lambda x: x * x)
    light = gs.checkpoint(step)
    scan = lambda x: gs.checkpoint_scan(lambda s: step(s), x, 1, snapshots=1)
    for f in (tf.function(light), tf.function(lambda x: light(x)), tf.function(scan)):
        require_degree_two(f)
    require_degree_two(light)
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(light, autograph=False)(X)


def test_autograph_has_nothing_to_complain_of(monkeypatch):
    warned, x, dense = [], tf.cast(X, tf.float32), keras.layers.Dense(3)
    monkeypatch.setattr(tf.get_logger(), "warning", lambda *words: warned.append(words))
    for fn in (lambda x: x * x, dense, gs.checkpoint(dense)):
        tf.function(gs.checkpoint(fn))(x)
    assert warned == []


def test_a_jacobian_traces_the_second_run():
    x = X[:1]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = gs.checkpoint(looping(lambda x: x * x))(x)
    expected = np.diag(6 * x.numpy().ravel())
    np.testing.assert_allclose(tf.reshape(tape.jacobian(y, x), (3, 3)), expected)


dropout = keras.layers.Dropout(0.5)
BODIES = {
    "random_uniform": drop,
    "next": lambda x: dropout(x, training=True) * x,
}


@pytest.mark.parametrize("around", [looping, branching])
@pytest.mark.parametrize("name", BODIES)
def test_state_in_a_loop_of_a_graph_belongs_into_a_block_of_its_own(name, around):
    x, body = tf.cast(X, tf.float32), BODIES[name]
    with pytest.raises(gs.GradsmithError, match=f"{name} runs in a loop or a bran"):
        require_degree_two(tf.function(gs.checkpoint(around(body))), x)
    require_degree_two(tf.function(around(gs.checkpoint(body))), x)
    require_degree_two(gs.checkpoint(around(body)), x)
