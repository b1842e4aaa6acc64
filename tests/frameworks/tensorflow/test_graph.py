"""Graphs: tf.function with and without XLA, loops and branches, tf.gradients."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.autograph.impl import conversion

import gradsmith as gs

from .cases import canary, canary_rule, cube, gradients, log1pexp, orders, scaled, x3

FORMS = [canary, canary_rule]


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("fn", FORMS)
def test_the_rule_is_used(fn, jit):
    (dx,) = gradients(tf.function(fn, jit_compile=jit), x3)
    assert dx.numpy() == pytest.approx([10, 20, 30])
    (dx,) = tf.function(lambda x: gradients(fn, x), jit_compile=jit)(x3)
    assert dx.numpy() == pytest.approx([10, 20, 30])


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("fn", [cube.closure, cube.rule, cube.jvp])
def test_orders_one_to_three(fn, jit):
    two = tf.constant(2.0)
    inside = tf.function(lambda x: orders(fn, x, 3), jit_compile=jit)(two)
    outside = orders(tf.function(fn, jit_compile=jit), two, 3)
    both = tf.function(lambda x: orders(tf.function(fn), x, 3), jit_compile=jit)(two)
    for found in (inside, outside, both):
        assert [float(g) for g in found] == [8, 12, 12, 6]


@pytest.mark.parametrize("n", [1, 2])
def test_tapes_on_both_sides_of_a_function(n):
    inner = tf.function(lambda x: orders(cube.closure, x, n)[-1])
    found = orders(inner, tf.constant(2.0), 3 - n)
    assert [float(g) for g in found] == [8, 12, 12, 6][n:]


def test_second_order_goes_through_what_the_gradient_captured():
    s = 1 / (1 + np.exp(-1.0))
    for fn in (tf.function(log1pexp), log1pexp):
        found = tf.function(lambda x, fn=fn: orders(fn, x, 2))(tf.constant(1.0))
        assert float(found[2]) == pytest.approx(s * (1 - s), rel=1e-5)


@pytest.mark.parametrize("shape", [None, [None], [3]])
@pytest.mark.parametrize("fn", [canary, canary_rule, cube.jvp])
def test_unknown_shapes_and_ranks(fn, shape):
    compiled = tf.function(fn, input_signature=[tf.TensorSpec(shape, tf.float32)])
    expected = [3, 12, 27] if fn is cube.jvp else [10, 20, 30]
    assert gradients(compiled, x3)[0].numpy() == pytest.approx(expected)
    _, _, second = orders(compiled, x3, 2)
    expected = [6, 12, 18] if fn is cube.jvp else [10, 10, 10]
    assert second.numpy() == pytest.approx(expected)


def test_words_in_place_of_a_gradient_where_shapes_are_unknown():
    @gs.custom_gradient
    def words(x, w, v):
        return x * w * v, lambda dy: (10 * dy, None, gs.zero)

    open_ = tf.TensorSpec(None, tf.float32)
    compiled = tf.function(words, input_signature=[open_] * 3)
    found = gradients(compiled, x3, x3 + 1, x3 + 2)
    assert [g if g is None else g.numpy().tolist() for g in found] == [
        [10] * 3,
        None,
        [0] * 3,
    ]


def test_keyword_calls_and_dicts():
    w = tf.constant(2.0)

    @tf.function
    def by_keyword(x, w):
        return scaled(w=w, x=x)

    @gs.custom_gradient
    def of_dict(inputs, *, scale):
        def grad(dy):
            return {"inputs": {"x": 10 * dy, "w": 20 * tf.reduce_sum(dy)}}

        return inputs["x"] * inputs["w"] * scale, grad

    dx, dw = gradients(by_keyword, x3, w)
    assert (dx.numpy().tolist(), float(dw)) == ([1000] * 3, -21)
    compiled = tf.function(lambda x, w: of_dict(inputs={"x": x, "w": w}, scale=2.0))
    dx, dw = gradients(compiled, x3, w)
    assert (dx.numpy().tolist(), float(dw)) == ([10] * 3, 60)


@pytest.mark.parametrize("fn", FORMS)
def test_autograph_loops_and_branches(fn):
    @tf.function
    def looped(x, n):
        for _ in tf.range(n):
            x = fn(x) if tf.reduce_sum(x) > 0 else x
        return x

    # y = x**4; the rule says 10 x for each of the two squares: 10 x² · 10 x
    (dx,) = gradients(lambda x: looped(x, tf.constant(2)), tf.constant(2.0))
    assert float(dx) == 800
    with tf.GradientTape() as tape:
        x = tf.constant(-2.0)
        tape.watch(x)
        y = looped(x, tf.constant(2))
    assert float(tape.gradient(y, x)) == 1


def test_a_body_with_a_loop_and_a_branch():
    @gs.custom_gradient
    def power(x):
        y = tf.while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, tf.ones_like(x))
        )[1]
        y = tf.cond(tf.reduce_sum(x) > 0, lambda: y, lambda: -y)
        return y, lambda dy: 3 * y / x * dy

    for fn in (power, tf.function(power)):
        found = orders(fn, tf.constant(2.0), 2)
        assert [float(g) for g in found] == [8, 12, 12]


@pytest.mark.parametrize("outside", [False, True])
def test_while_loop_map_fn_and_scan(outside):
    def while_loop(x):
        return tf.while_loop(
            lambda i, y: i < 2, lambda i, y: (i + 1, canary(y)), (0, x)
        )[1]

    def scan(x):
        return tf.scan(lambda total, e: total + canary(e), x)[-1]

    cases = [
        (while_loop, [100, 800, 2700]),
        (lambda x: tf.map_fn(canary, x), [10, 20, 30]),
        (scan, [10 * 0 + 1, 20, 30]),
    ]
    for fn, expected in cases:
        if outside:
            (dx,) = gradients(tf.function(fn), x3)
        else:
            (dx,) = tf.function(lambda x, fn=fn: gradients(fn, x))(x3)
        assert dx.numpy() == pytest.approx(expected)


def test_second_order_through_a_loop():
    def twice(x):
        return tf.while_loop(
            lambda i, y: i < 2, lambda i, y: (i + 1, cube.closure(y)), (0, x)
        )[1]

    found = orders(tf.function(twice), tf.constant(1.5), 2)
    assert float(found[1]) == pytest.approx(9 * 1.5**8)
    assert float(found[2]) == pytest.approx(72 * 1.5**7)


def test_tf_gradients():
    @tf.function
    def both(x):
        y = canary(x)
        (dx,) = tf.gradients(y, x)
        (ddx,) = tf.gradients(dx, x)
        return dx, ddx

    dx, ddx = both(x3)
    assert dx.numpy() == pytest.approx([10, 20, 30])
    assert ddx.numpy() == pytest.approx([10, 10, 10])


def test_tf_gradients_in_a_graph_with_a_session():
    with tf.Graph().as_default():
        x = tf.compat.v1.placeholder(tf.float32, [3])
        (dx,) = tf.gradients(canary_rule(x), x)
        with tf.compat.v1.Session() as session:
            found = session.run(dx, {x: [1.0, 2.0, 3.0]})
    assert found == pytest.approx([10, 20, 30])


def test_an_operation_as_argument_of_a_function():
    fn = tf.function(lambda op, x: op(x))
    (dx,) = gradients(lambda x: fn(canary_rule, x), x3)
    assert dx.numpy() == pytest.approx([10, 20, 30])
    (dx,) = gradients(lambda x: fn(cube.rule, x), x3)
    assert dx.numpy() == pytest.approx([3, 12, 27])


def test_autograph_leaves_our_functions_alone():
    assert conversion.is_allowlisted(gs.unbroadcast)
    assert conversion.is_allowlisted(canary)


def test_an_operation_compiled_itself_and_its_methods():
    class Scaled:
        @gs.custom_gradient
        def apply(self, x):
            return x, lambda dy: 10 * dy

    for fn in (tf.function(Scaled().apply), tf.function(lambda x: Scaled().apply(x=x))):
        assert gradients(fn, x3)[0].numpy() == pytest.approx([10] * 3)


def test_eager_tensors_and_tensors_of_an_outer_graph_as_arguments():
    outside = x3 + 1

    @tf.function
    def fn(x, flag):
        constant = canary(outside)
        return tf.cond(flag, lambda: canary(x), lambda: x) + constant

    (dx,) = gradients(lambda x: fn(x, tf.constant(True)), x3)
    assert dx.numpy() == pytest.approx([10, 20, 30])
    with tf.GradientTape() as tape:
        tape.watch(outside)
        y = fn(tf.zeros(3), tf.constant(False))
    assert tape.gradient(y, outside).numpy() == pytest.approx([20, 30, 40])


def test_resources_and_variants():
    table = tf.Variable([1.0, 2.0])

    @gs.custom_gradient
    def read(x, handle):
        w = tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
        return x * w, lambda dy: (10 * dy, None)

    @gs.custom_gradient
    def first(x, items):
        item = tf.raw_ops.TensorListGetItem(
            input_handle=items, index=0, element_shape=[2], element_dtype=tf.float32
        )
        return x + item, lambda dy: {"x": 10 * dy}

    def with_list(x):
        items = tf.raw_ops.TensorListFromTensor(
            tensor=tf.ones((3, 2)), element_shape=[2]
        )
        return first(x, items)

    x = tf.constant([1.0, 1.0])
    for fn in (lambda x: read(x, table.handle), with_list):
        for wrapped in (fn, tf.function(fn)):
            assert gradients(wrapped, x)[0].numpy().tolist() == [10, 10]


def test_a_gradient_declared_not_to_exist():
    @gs.custom_gradient
    def loss(x, labels):
        why = gs.not_differentiable("the labels are data")
        return x * labels, lambda dy: (10 * dy, why)

    labels = tf.ones(3)
    with pytest.raises(gs.NotDifferentiableError, match="labels are data"):
        gradients(loss, x3, labels)
    with pytest.raises(gs.NotDifferentiableError, match="labels are data"):
        tf.function(lambda x, labels: gradients(loss, x, labels))(x3, labels)
    for fn in (loss, tf.function(loss)):
        (dx,) = gradients(lambda x, fn=fn: fn(x, labels), x3)
        assert dx.numpy() == pytest.approx([10] * 3)
    # A function gives all its gradients at once, so nobody knows which are used
    _, unknown = gradients(tf.function(loss), x3, labels)
    assert np.isnan(unknown.numpy()).all()
