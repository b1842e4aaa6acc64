"""Python operations where TensorFlow leaves shapes open: batches, datasets, Keras."""

import gc
import weakref

import keras
import ml_dtypes
import numpy as np
import pytest
import tensorflow as tf

import gradsmith as gs

from .cases import gradients, x3

EPS = float(np.finfo("float32").eps)


@gs.python_op
def sines(x):
    return np.sin(x)


@sines.vjp
def _(dy, y, x):
    return dy * np.cos(x)


@gs.python_op
def row_sums(x):
    return {"sum": np.sum(x, axis=1), "rows": np.int32(len(x)), "twice": [*x.T] * 2}


@row_sums.vjp
def _(dy, y, x):
    return np.tile(dy["sum"][:, None], x.shape[1])


def test_outputs_of_open_batches_are_tried_in_two_sizes():
    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def fn(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            found = row_sums(sines(x))
            y = found["sum"]
        shapes.append((y.shape, found["rows"].shape, found["twice"][-1].shape))
        return y, tape.gradient(y, x)

    shapes = []
    for n in (1, 4):
        x = np.linspace(0.0, 1.0, 3 * n, dtype="float32").reshape(n, 3)
        y, dx = fn(x)
        np.testing.assert_allclose(y, np.sin(x).sum(axis=1), rtol=4 * EPS)
        np.testing.assert_allclose(dx, np.cos(x), rtol=4 * EPS)
    (traced,) = shapes
    assert [shape.as_list() for shape in traced] == [[None], [], [None]]


def test_what_is_the_same_in_both_trials_is_held_to():
    @gs.python_op
    def first(x):
        return x[:8]

    fn = tf.function(first, input_signature=[tf.TensorSpec([None])])
    assert fn(tf.ones(9)).shape == (8,)
    with pytest.raises(tf.errors.OpError, match="other outputs than expected"):
        fn(tf.ones(7))


def test_an_unknown_number_of_axes():
    anything = [tf.TensorSpec(None)]
    with pytest.raises(gs.GradsmithError, match="number of an argument's axes") as info:
        tf.function(sines, input_signature=anything)(x3)
    assert "spec=lambda x: gs.spec(x.shape, x.dtype)" in str(info.value)
    told = gs.python_op(
        np.sin,
        lambda dy, y, x: dy * np.cos(x),
        spec=lambda x: gs.spec(x.shape, x.dtype),
    )
    (dx,) = gradients(tf.function(told, input_signature=anything), x3)
    np.testing.assert_allclose(dx, np.cos(x3), rtol=4 * EPS)


def test_in_a_dataset():
    rows = np.zeros((6, 3), "float32")
    batches = tf.data.Dataset.from_tensor_slices(rows).batch(4)
    mapped = batches.map(lambda x: gradients(sines, x)[0], num_parallel_calls=2)
    assert mapped.element_spec.shape.as_list() == [None, 3]
    np.testing.assert_array_equal(tf.concat([*mapped], axis=0), rows + 1)


class Sines(keras.layers.Layer):
    def call(self, x):
        return sines(x)


@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_in_a_layer_through_fit(policy):
    dense = keras.layers.Dense(1, kernel_initializer="ones", dtype=policy)
    layers = [keras.Input((1,)), dense, Sines(dtype=policy)]
    model = keras.Sequential(layers)
    model.compile(keras.optimizers.SGD(1.0), "mse", jit_compile=False)
    x, target = np.full((5, 1), 0.5), np.zeros((5, 1))
    model.fit(x, target, batch_size=5, verbose=0)
    # d/dw of sin(w x)**2 at w = 1
    expected = 1 - 2 * np.sin(0.5) * np.cos(0.5) * 0.5
    eps = float(ml_dtypes.finfo(dense.compute_dtype).eps)
    np.testing.assert_allclose(dense.kernel.numpy(), [[expected]], rtol=4 * eps)


def test_dropped_graphs_are_freed():
    # TensorFlow keeps what is called back for ever
    fn = tf.function(lambda x: gradients(sines, tf.sin(x))[0])
    outer = tf.function(lambda x: sines(tf.sin(x)))
    fn(x3)
    gradients(outer, x3)
    graphs = [weakref.ref(f.get_concrete_function(x3).graph) for f in (fn, outer)]
    del fn, outer
    gc.collect()
    assert [graph() for graph in graphs] == [None, None]
