"""Vectorized loops: tf.vectorized_map, jacobian, batch_jacobian."""

import numpy as np
import pytest
import tensorflow as tf

import gradsmith as gs

from .cases import canary, canary_rule, cube, gradients, orders, x3

xs = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


@pytest.mark.parametrize("pfor", [True, False])
@pytest.mark.parametrize("wrap", [lambda fn: fn, tf.function])
@pytest.mark.parametrize("fn", [canary, canary_rule])
def test_jacobian(fn, wrap, pfor):
    def jacobian(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = fn(x)
        return tape.jacobian(y, x, experimental_use_pfor=pfor)

    assert wrap(jacobian)(x3).numpy() == pytest.approx(np.diag([10, 20, 30]))
    with tf.GradientTape() as tape:
        tape.watch(x3)
        y = wrap(fn)(x3)
    if pfor:
        assert tape.jacobian(y, x3).numpy() == pytest.approx(np.diag([10, 20, 30]))


@pytest.mark.parametrize("pfor", [True, False])
def test_hessian_by_the_jacobian_of_a_gradient(pfor):
    with tf.GradientTape(persistent=not pfor) as outer:
        outer.watch(x3)
        with tf.GradientTape() as tape:
            tape.watch(x3)
            y = cube.closure(x3)
        dx = tape.gradient(y, x3)
    found = outer.jacobian(dx, x3, experimental_use_pfor=pfor)
    assert found.numpy() == pytest.approx(np.diag([6, 12, 18]))


@pytest.mark.parametrize("pfor", [True, False])
def test_batch_jacobian(pfor):
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(xs)
        y = canary(xs)
    found = tape.batch_jacobian(y, xs, experimental_use_pfor=pfor)
    expected = [np.diag(row) for row in 10 * xs.numpy()]
    assert found.numpy() == pytest.approx(np.asarray(expected))


@pytest.mark.parametrize("wrap", [lambda fn: fn, tf.function])
@pytest.mark.parametrize("fn", [canary, canary_rule])
def test_gradients_inside(fn, wrap):
    run = wrap(lambda xs: tf.vectorized_map(lambda x: gradients(fn, x)[0], xs))
    assert run(xs).numpy() == pytest.approx(10 * xs.numpy())


@pytest.mark.parametrize("fn", [canary, canary_rule])
def test_gradients_around(fn):
    def mapped(xs):
        return tf.vectorized_map(fn, xs)

    inside = tf.function(lambda xs: gradients(mapped, xs)[0])(xs)
    assert inside.numpy() == pytest.approx(10 * xs.numpy())
    for run in (mapped, tf.function(mapped)):
        assert gradients(run, xs)[0].numpy() == pytest.approx(10 * xs.numpy())


@pytest.mark.parametrize("fn", [cube.closure, cube.rule, cube.jvp])
def test_second_order_around(fn):
    def mapped(xs):
        return tf.vectorized_map(fn, xs)

    for found in (
        orders(mapped, xs, 2),
        tf.function(lambda xs: orders(mapped, xs, 2))(xs),
    ):
        assert found[1].numpy() == pytest.approx(3 * xs.numpy() ** 2)
        assert found[2].numpy() == pytest.approx(6 * xs.numpy())


def test_a_rule_that_uses_the_output():
    root = gs.with_gradient(tf.sqrt, lambda dy, y, x: dy / (2 * y))
    found = orders(lambda xs: tf.vectorized_map(root, xs), xs, 2)
    assert found[1].numpy() == pytest.approx(0.5 * xs.numpy() ** -0.5)
    assert found[2].numpy() == pytest.approx(-0.25 * xs.numpy() ** -1.5)


def test_what_is_the_same_in_all_iterations():
    w, v = tf.constant([2.0, 3.0]), tf.Variable(7.0)

    @gs.custom_gradient
    def product(x, w):
        e = x + 1
        return tf.reduce_sum(x * w) * v, lambda dy: (10 * e * dy, 100 * x * dy)

    def mapped(w):
        return tf.vectorized_map(lambda x: product(x, w), xs)

    with tf.GradientTape() as tape:
        tape.watch([w, xs])
        y = mapped(w)
    dx, dw, dv = tape.gradient(y, [xs, w, v])
    assert dx.numpy() == pytest.approx(10 * (xs.numpy() + 1))
    assert dw.numpy() == pytest.approx([900, 1200])
    assert float(dv) == pytest.approx((xs.numpy() * w.numpy()).sum())


def test_forward_mode_around():
    def mapped(xs):
        return tf.vectorized_map(canary, xs)

    with tf.autodiff.ForwardAccumulator(xs, tf.ones_like(xs)) as accumulator:
        y = mapped(xs)
    assert accumulator.jvp(y).numpy() == pytest.approx(10 * xs.numpy())


def test_several_outputs_and_whole_numbers():
    @gs.custom_gradient
    def split(x, i):
        outputs = (2 * x, tf.gather(x, i), i + 1)
        return outputs, lambda dy: {"x": 10 * dy[0] + 100 * dy[1]}

    index = tf.constant([0, 1, 0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(xs)
        a, b, n = tf.vectorized_map(lambda args: split(*args), (xs, index))
    assert n.numpy().tolist() == [1, 2, 1]
    assert tape.gradient(a, xs).numpy() == pytest.approx(np.full((3, 2), 10))
    assert tape.gradient(b, xs).numpy() == pytest.approx(np.full((3, 2), 100))


def test_a_rule_that_captured_a_tensor_from_outside():
    w = tf.constant([1.0, 2.0, 3.0])
    fn = gs.with_gradient(
        lambda x: w * x,
        lambda dy, y, x: 10 * w * dy,
        jvp=lambda dx, y, x: 10 * w * dx,
    )
    for wrapped in (fn, tf.function(fn)):
        with tf.GradientTape() as tape:
            tape.watch(x3)
            y = wrapped(x3)
        expected = [[10, 0, 0], [0, 20, 0], [0, 0, 30]]
        assert tape.jacobian(y, x3).numpy().tolist() == expected
