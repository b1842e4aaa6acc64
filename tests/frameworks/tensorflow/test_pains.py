"""Where TensorFlow's own mechanism is wrong today, and an operation of ours is right.

Each test asserts TensorFlow's wrong result too, so that we notice when it is mended.
Numbers are those of public issues of tensorflow/tensorflow.
"""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import ops

import gradsmith as gs

from .cases import gradients, jvp, scaled, x3


@tf.custom_gradient
def their_canary(x):
    return x * x, lambda dy: 10 * x * dy


@gs.custom_gradient
def our_canary(x):
    return x * x, lambda dy: 10 * x * dy


def test_65839_a_keyword_call_bypasses_the_rule():
    @tf.custom_gradient
    def theirs(x, w):
        return x * w, lambda dy: (1000 * dy, tf.constant(-21.0))

    x, w = tf.constant(2.0), tf.constant(3.0)
    call = lambda fn: lambda x, w: fn(x=x, w=w)
    assert [float(g) for g in gradients(call(theirs), x, w)] == [3, 2]
    assert [float(g) for g in gradients(call(scaled), x, w)] == [1000, -21]


def test_77559_a_mixed_call_raises_and_in_a_graph_any_keyword():
    @tf.custom_gradient
    def theirs(x, w):
        return x * w, lambda dy: (1000 * dy, tf.constant(-21.0))

    x, w = tf.constant(2.0), tf.constant(3.0)
    mixed = lambda fn: lambda x, w: fn(x, w=w)
    with pytest.raises(ValueError, match="expected to return 1"):
        gradients(mixed(theirs), x, w)
    with pytest.raises(ValueError, match="keywords arguments only when eager"):
        gradients(tf.function(mixed(theirs)), x, w)
    for fn in (mixed(scaled), tf.function(mixed(scaled))):
        assert [float(g) for g in gradients(fn, x, w)] == [1000, -21]


def wrong_ones(decorator):
    @decorator
    def shape(x):
        return 2 * x, lambda dy: tf.ones((7, 2))

    @decorator
    def dtype(x):
        return 2 * x, lambda dy: tf.cast(dy, tf.float64)

    @decorator
    def scalar(x):
        return 2 * x, lambda dy: tf.reduce_sum(dy)

    return shape, dtype, scalar


def test_26048_wrong_shapes_and_dtypes_are_accepted():
    theirs = [gradients(fn, x3)[0] for fn in wrong_ones(tf.custom_gradient)]
    assert [(g.shape, g.dtype) for g in theirs] == [
        ((7, 2), tf.float32),
        ((3,), tf.float64),
        ((), tf.float32),
    ]
    for fn in wrong_ones(gs.custom_gradient):
        with pytest.raises(gs.GradientContractError):
            gradients(fn, x3)


def test_forward_mode_ignores_the_rule():
    @tf.custom_gradient
    def theirs(x):
        e = tf.exp(x)
        return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    @gs.custom_gradient
    def ours(x):
        e = tf.exp(x)
        return tf.math.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))

    x, dx = tf.constant(100.0), tf.constant(1.0)
    assert np.isnan(jvp(theirs, x, dx))
    assert float(gradients(theirs, x)[0]) == float(jvp(ours, x, dx)) == 1
    assert jvp(their_canary, x3, tf.ones(3)).numpy() == pytest.approx([2, 4, 6])
    assert jvp(our_canary, x3, tf.ones(3)).numpy() == pytest.approx([10, 20, 30])


def test_vectorized_map_drops_the_rule():
    xs = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    run = lambda fn: gradients(lambda xs: tf.vectorized_map(fn, xs), xs)[0].numpy()
    assert run(their_canary) == pytest.approx(2 * xs.numpy())
    assert run(our_canary) == pytest.approx(10 * xs.numpy())


class Model:
    def __init__(self, decorator):
        self.w = tf.Variable(3.0)
        self.fn = decorator(lambda x: (x * self.w, lambda dy: 10 * dy))


def test_31945_38622_43535_captured_variables():
    x = tf.constant(2.0)
    for wrap in (lambda fn: fn, tf.function):
        theirs, ours = Model(tf.custom_gradient), Model(gs.custom_gradient)
        with pytest.raises(TypeError, match="must accept keyword argument 'variables'"):
            gradients(wrap(lambda x, model=theirs: model.fn(x)), x)
        fn = wrap(lambda x, model=ours: model.fn(x))
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = fn(x)
        assert [float(g) for g in tape.gradient(y, [x, ours.w])] == [10, 2]


def second_order(fn, x):
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = fn(x)
        first = tape.gradient(y, x)
    return outer.gradient(first, x)


def test_34503_36168_a_gradient_with_a_rule_captures_the_argument():
    def make(decorator):
        @decorator
        def square(x):
            @decorator
            def grad(dy):
                return 2 * x * dy, lambda ddy: 2 * x * ddy

            return x * x, grad

        return lambda x: square(x) ** 2

    # x⁴ has the second derivative 12 x²; theirs is 8 x², or an error
    x = tf.constant(3.0)
    theirs, ours = make(tf.custom_gradient), make(gs.custom_gradient)
    assert float(second_order(theirs, x)) == 72
    with pytest.raises(TypeError, match="out of scope"):
        second_order(tf.function(theirs), x)
    assert float(second_order(ours, x)) == 108
    assert float(second_order(tf.function(ours), x)) == 108
    assert float(tf.function(lambda x: second_order(ours, x))(x)) == 108


@pytest.mark.parametrize("inside", [False, True])
def test_34503_a_rule_given_inside_of_a_rule(inside):
    def make(decorator):
        @decorator
        def fn(x):
            def grad(dy):
                @decorator
                def inner(x):
                    return 2 * x, lambda ddy: 100 * ddy

                return inner(x) * dy

            return x * x, grad

        return fn

    run = tf.function(second_order) if inside else second_order
    assert float(run(make(gs.custom_gradient), tf.constant(3.0))) == 100


def test_97697_27492_each_trace_stays_in_the_registry_with_its_graph():
    def traced(fn):
        compiled = tf.function(lambda x: fn(x))
        graph = compiled.get_concrete_function(x3).graph
        return weakref.ref(graph)

    traced(our_canary)
    before = len(ops.gradient_registry.list())
    theirs = traced(their_canary)
    assert len(ops.gradient_registry.list()) == before + 1
    ours = traced(our_canary)
    gc.collect()
    assert theirs() is not None
    assert ours() is None
    assert len(ops.gradient_registry.list()) == before + 1


def test_an_operation_given_to_a_function_is_not_unwrapped():
    fn = tf.function(lambda op, x: op(x))
    (dx,) = gradients(lambda x: fn(our_canary, x), x3)
    assert dx.numpy() == pytest.approx([10, 20, 30])
