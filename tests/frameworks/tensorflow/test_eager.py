"""Eager tapes: the rule is used, at any order, and what it says is kept."""

from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import gradsmith as gs

from .cases import canary, cube, gradients, log1pexp, orders, scaled, x3


def test_the_rule_is_used():
    assert gradients(canary, x3)[0].numpy() == pytest.approx([10, 20, 30])


@pytest.mark.parametrize("form", ["closure", "rule", "jvp"])
def test_orders_one_to_three(form):
    fn = {"closure": cube.closure, "rule": cube.rule, "jvp": cube.jvp}[form]
    y, *found = orders(fn, tf.constant(2.0), 3)
    assert float(y) == 8
    assert [float(g) for g in found] == [12, 12, 6]


def test_second_order_goes_through_what_the_gradient_captured():
    _, first, second = orders(log1pexp, tf.constant(1.0), 2)
    s = 1 / (1 + np.exp(-1.0))
    assert float(first) == pytest.approx(s)
    assert float(second) == pytest.approx(s * (1 - s), rel=1e-5)


def test_second_order_by_a_persistent_tape_in_its_own_context():
    x = tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        first = tape.gradient(cube.closure(x), x)
    assert float(tape.gradient(first, x)) == 12


def test_a_persistent_tape_asks_twice():
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x3)
        y = canary(x3)
    for _ in range(2):
        assert tape.gradient(y, x3).numpy() == pytest.approx([10, 20, 30])


def test_without_a_tape_the_body_runs_alone():
    assert canary(x3).numpy() == pytest.approx([1, 4, 9])


def test_nothing_is_recorded_while_recording_is_stopped():
    with tf.GradientTape() as tape:
        tape.watch(x3)
        with tape.stop_recording():
            y = canary(x3)
    assert tape.gradient(y, x3) is None


def test_an_argument_with_a_stopped_gradient():
    with tf.GradientTape() as tape:
        tape.watch(x3)
        y = canary(tf.stop_gradient(x3))
    assert tape.gradient(y, x3) is None
    zeros = tf.UnconnectedGradients.ZERO
    with tf.GradientTape() as tape:
        tape.watch(x3)
        y = canary(tf.stop_gradient(x3))
    assert tape.gradient(y, x3, unconnected_gradients=zeros).numpy() == pytest.approx(0)


def test_output_gradients():
    with tf.GradientTape() as tape:
        tape.watch(x3)
        y = cube.rule(x3)
    given = tf.constant([1.0, 0.0, 2.0])
    found = tape.gradient(y, x3, output_gradients=given)
    assert found.numpy() == pytest.approx([3, 0, 54])


def test_keyword_calls_are_the_same_call():
    w = tf.constant(2.0)
    for call in (
        lambda: scaled(x3, w),
        lambda: scaled(x3, w=w),
        lambda: scaled(w=w, x=x3),
    ):
        with tf.GradientTape() as tape:
            tape.watch([x3, w])
            y = call()
        dx, dw = tape.gradient(y, [x3, w])
        assert dx.numpy() == pytest.approx([1000] * 3)
        assert float(dw) == -21


class Pair(NamedTuple):
    a: tf.Tensor
    b: tf.Tensor


@gs.custom_gradient
def of_trees(x, scale=2.0):
    outputs = {"sum": x["a"] + x["rest"][0] * scale, "n": tf.shape(x["a"])}

    def grad(dy):
        return {"a": 10 * dy["sum"], "rest": [100 * dy["sum"], None]}

    return outputs, grad


def test_dicts_and_lists_in_and_out():
    a, b, i = tf.constant([1.0, 2.0]), tf.constant([3.0, 4.0]), tf.constant([1, 2])
    with tf.GradientTape() as tape:
        tape.watch([a, b])
        y = of_trees({"a": a, "rest": [b, i]})
    assert y["n"].numpy() == pytest.approx([2])
    da, db = tape.gradient(y["sum"], [a, b])
    assert (da.numpy().tolist(), db.numpy().tolist()) == ([10, 10], [100, 100])


@gs.custom_gradient
def swap(pair):
    return Pair(pair.b * 2, pair.a * 3), lambda dy: Pair(30 * dy.b, 20 * dy.a)


def test_named_tuples_in_and_out():
    a, b = tf.constant(1.0), tf.constant(2.0)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([a, b])
        y = swap(Pair(a, b))
    assert [float(g) for g in tape.gradient(y, [a, b])] == [30, 20]
    assert [float(g) for g in tape.gradient(y.b, [a, b])] == [30, 0]


@gs.operation
def mean_over(x, axis):
    return tf.reduce_mean(x, axis=axis)


@mean_over.vjp
def _(dy, y, x, axis):
    return 7 * tf.ones_like(x) * tf.expand_dims(dy, axis)


def test_static_arguments():
    x = tf.ones((2, 3))
    (dx,) = gradients(lambda x: mean_over(x, axis=0), x)
    assert dx.numpy() == pytest.approx(np.full((2, 3), 7))


@gs.custom_gradient
def of_many_kinds(x, index, flag, name):
    y = tf.gather(x, index)
    outputs = (y, index + 1, tf.logical_not(flag), tf.strings.upper(name))
    return outputs, lambda dy: {"x": 10 * tf.ones_like(x) * tf.reduce_sum(dy[0])}


def test_whole_numbers_truth_values_and_strings():
    index, flag, name = tf.constant([0, 2]), tf.constant(True), tf.constant("a")
    with tf.GradientTape() as tape:
        tape.watch(x3)
        y, i, no, upper = of_many_kinds(x3, index, flag, name)
    assert tape.gradient(y, x3).numpy() == pytest.approx([20, 20, 20])
    assert i.numpy().tolist() == [1, 3]
    assert not no
    assert upper.numpy() == b"A"


@gs.custom_gradient
def rounded(x):
    return tf.cast(tf.round(x), tf.int32), lambda dy: 10 * dy


def test_no_output_with_a_gradient():
    with tf.GradientTape() as tape:
        tape.watch(x3)
        y = rounded(x3)
    assert y.dtype == tf.int32
    assert tape.gradient(tf.cast(y, tf.float32), x3) is None


@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (1, 1, 1)])
def test_scalars_and_empty_arrays(shape):
    x = tf.ones(shape)
    (dx,) = gradients(canary, x)
    assert dx.shape == x.shape
    assert dx.numpy() == pytest.approx(np.full(shape, 10.0))


@gs.custom_gradient
def same(x):
    return x, lambda dy: 10 * dy


def test_an_output_that_is_the_argument():
    (dx,) = gradients(same, x3)
    assert dx.numpy() == pytest.approx([10] * 3)
    (dx,) = gradients(lambda x: same(x) + x, x3)
    assert dx.numpy() == pytest.approx([11] * 3)


@gs.custom_gradient
def plain_numbers(x):
    return np.float32(2) * x.numpy(), lambda dy: 10 * dy


def test_a_body_on_numpy_arrays():
    (dx,) = gradients(plain_numbers, x3)
    assert dx.numpy() == pytest.approx([10] * 3)
    assert isinstance(plain_numbers(x3), tf.Tensor)


def test_a_variable_as_argument_gets_the_gradient():
    for trainable in (True, False):
        v = tf.Variable([1.0, 2.0], trainable=trainable)
        with tf.GradientTape() as tape:
            tape.watch(v)
            y = canary(v)
        assert tape.gradient(y, v).numpy() == pytest.approx([10, 20])


def test_an_argument_given_twice():
    (dx,) = gradients(lambda x: gs_product(x, x), x3)
    assert dx.numpy() == pytest.approx([110] * 3)


@gs.custom_gradient
def gs_product(a, b):
    return a * b, lambda dy: (10 * dy, 100 * dy)


def test_indexed_slices_upstream_and_as_gradient():
    @gs.custom_gradient
    def rows(x):
        def grad(dy):
            assert isinstance(dy, tf.Tensor)
            return tf.IndexedSlices(10 * dy[:1], tf.constant([1]), tf.shape(x))

        return 2 * x, grad

    x = tf.ones((3, 2))
    (dx,) = gradients(lambda x: tf.gather(rows(x), [0, 0]), x)
    assert dx.numpy().tolist() == [[0, 0], [20, 20], [0, 0]]


def test_custom_gradients_of_tensorflow_inside_and_around():
    @tf.custom_gradient
    def theirs(x):
        return x * x, lambda dy: 7 * dy

    @gs.custom_gradient
    def ours(x):
        return theirs(x), lambda dy: 10 * theirs(x) * dy

    @tf.custom_gradient
    def around(x):
        return canary(x), lambda dy: 5 * canary(x) * dy

    two = tf.constant(2.0)
    assert [float(g) for g in orders(ours, two, 2)] == [4, 40, 70]
    assert [float(g) for g in orders(around, two, 2)] == [4, 20, 100]


def test_an_operation_inside_of_an_operation():
    @gs.custom_gradient
    def outer(x):
        return canary(x), lambda dy: canary(x) * dy

    assert [float(g) for g in orders(outer, tf.constant(2.0), 2)] == [4, 4, 20]


def test_recompute_grad():
    fn = tf.recompute_grad(lambda x: canary(tf.sin(x)))
    (dx,) = gradients(fn, x3)
    expected = 10 * np.sin([1, 2, 3]) * np.cos([1, 2, 3])
    assert dx.numpy() == pytest.approx(expected, rel=1e-5)


def test_methods():
    class Scaled:
        factor = 10.0

        @gs.custom_gradient
        def apply(self, x):
            return x, lambda dy: self.factor * dy

    (dx,) = gradients(Scaled().apply, x3)
    assert dx.numpy() == pytest.approx([10] * 3)


def test_a_gradient_nobody_asks_for():
    asked = []

    @gs.operation
    def product(a, b):
        return a * b

    @product.vjp
    def _(dy, y, a, b, needs):
        asked.append(needs)
        return b * dy, a * dy

    b = tf.constant([4.0, 5.0, 6.0])
    (dx,) = gradients(lambda x: product(x, b), x3)
    assert dx.numpy() == pytest.approx([4, 5, 6])
    assert asked == [{"a": True, "b": False}]
