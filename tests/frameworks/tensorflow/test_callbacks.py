"""Functions of NumPy arrays, in eager mode and in graphs."""

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import gradsmith as gs
from gradsmith.core.arrays import FRAMEWORKS
from gradsmith.core.cotangent import Spec

from .cases import gradients, jvp, orders, x3

host = FRAMEWORKS["tensorflow"].call.host


def on_host(fn, *arrays):
    spec = Spec(tuple(arrays[0].shape), np.dtype("float32"))
    return host(lambda *xs: [fn(*xs)], arrays, [spec], "cubed")[0]


@gs.operation
def cubed(x):
    return on_host(lambda x: np.asarray(x**3), x)


@cubed.vjp
def _(dy, y, x):
    return on_host(lambda dy, x: np.asarray(30 * x**2 * dy), dy, x)


@cubed.jvp
def _(dx, y, x):
    return on_host(lambda dx, x: np.asarray(30 * x**2 * dx), dx, x)


@pytest.mark.parametrize("wrap", [lambda fn: fn, tf.function])
def test_both_modes(wrap):
    fn = wrap(cubed)
    assert fn(x3).numpy() == pytest.approx([1, 8, 27])
    assert gradients(fn, x3)[0].numpy() == pytest.approx([30, 120, 270])
    assert jvp(fn, x3, x3).numpy() == pytest.approx([30, 240, 810])
    inside = wrap(lambda x: (*gradients(cubed, x), jvp(cubed, x, x)))(x3)
    assert inside[0].numpy() == pytest.approx([30, 120, 270])
    assert inside[1].numpy() == pytest.approx([30, 240, 810])


def test_several_outputs_and_dtypes():
    specs = [Spec((3,), np.dtype("float32")), Spec((), np.dtype("int64"))]
    bfloat16 = tf.bfloat16.as_numpy_dtype

    def fn(x):
        return [2 * x, np.asarray(x.size)]

    @tf.function
    def compiled(x):
        y, n = host(fn, [x], specs, "double")
        assert (y.shape, n.shape) == ((3,), ())
        half = Spec((3,), np.dtype(bfloat16))
        (z,) = host(lambda x: [x.astype(bfloat16)], [x], [half], "half")
        return y, n, z

    y, n, z = compiled(x3)
    assert (y.numpy().tolist(), int(n), z.dtype) == ([2, 4, 6], 3, tf.bfloat16)


def test_a_second_derivative_is_refused():
    with pytest.raises(gs.NotDifferentiableError, match="'cubed' runs Python code"):
        orders(cubed, x3, 2)
    with pytest.raises(gs.NotDifferentiableError, match="'cubed' runs Python code"):
        tf.function(lambda x: orders(cubed, x, 2))(x3)
    with pytest.raises(tf.errors.OpError, match="'cubed' runs Python code"):
        orders(tf.function(cubed), x3, 2)


def test_vectorized():
    xs = tf.constant([[1.0, 2.0], [3.0, 4.0]])
    expected = pytest.approx(30 * xs.numpy() ** 2)
    (dx,) = gradients(lambda xs: tf.vectorized_map(cubed, xs), xs)
    assert dx.numpy() == expected
    dx = tf.vectorized_map(lambda x: gradients(cubed, x)[0], xs)
    assert dx.numpy() == expected


def test_an_operation_without_a_name():
    spec = Spec((3,), np.dtype("float32"))
    double = gs.with_gradient(
        lambda x: host(lambda x: [2 * x], [x], [spec], "<lambda>")[0],
        lambda dy, y, x: 10 * dy,
    )
    assert gradients(tf.function(double), x3)[0].numpy() == pytest.approx([10] * 3)


def test_xla_is_told_apart_at_trace_time():
    with pytest.raises(gs.UnsupportedOperationError, match="XLA can't compile"):
        tf.function(cubed, jit_compile=True)(x3)

    @tf.function(jit_compile=True)
    def nested(x):
        return tf.cond(tf.reduce_sum(x) > 0, lambda: cubed(x), lambda: x)

    with pytest.raises(gs.UnsupportedOperationError, match="jit_compile=False"):
        nested(x3)


def test_in_a_model():
    class Layer(keras.layers.Layer):
        def call(self, x):
            return cubed(x)

        def compute_output_shape(self, shape):
            return shape

    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1), Layer()])
    model.compile("sgd", "mse", jit_compile=False)
    before = model.get_weights()[0]
    model.fit(np.ones((4, 1)), np.ones((4, 1)), verbose=0)
    assert not np.array_equal(before, model.get_weights()[0])


SCRIPT = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
try:
    print(tf.saved_model.load({path!r}).fn(tf.ones(3)))
except tf.errors.OpError as error:
    print("refused:", error.message)
"""


def test_a_saved_model_cannot_run_python(tmp_path):
    module = tf.Module()
    module.fn = tf.function(cubed, input_signature=[tf.TensorSpec([3], tf.float32)])
    with pytest.warns(
        UserWarning, match="'cubed' runs Python code, which is not saved"
    ):
        tf.saved_model.save(module, tmp_path)
    script = SCRIPT.format(path=str(tmp_path))
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "refused: " in run.stdout
