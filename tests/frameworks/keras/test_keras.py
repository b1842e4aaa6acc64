"""Keras layers and losses: trained, saved and loaded, with the rule kept."""

import subprocess
import sys

import keras
import numpy as np
import pytest
import tensorflow as tf

import gradsmith as gs

MODES = {
    "eager": {"run_eagerly": True},
    "graph": {"jit_compile": False},
    "jit": {"jit_compile": True},
    "auto": {},
}


@gs.custom_gradient
def doubled(x):
    """2x with ten times its gradient."""
    return 2 * x, lambda dy: 20 * dy


@gs.operation
def weighted(x, w):
    return tf.linalg.matmul(x, w)


@weighted.vjp
def _(dy, y, x, w):
    dx = tf.linalg.matmul(dy, w, transpose_b=True)
    return {"x": dx, "w": 10 * tf.linalg.matmul(x, dy, transpose_a=True)}


@keras.saving.register_keras_serializable("tests")
class Weighted(keras.layers.Layer):
    def build(self, shape):
        self.w = self.add_weight(shape=(shape[-1], 1), initializer="ones", name="w")

    def call(self, x):
        return doubled(weighted(x, w=self.w))


@gs.custom_gradient
def squared_error(labels, outputs):
    error = outputs - labels
    why = gs.not_differentiable("the labels are data")
    return error**2, lambda dy: (why, 4 * error * dy)  # twice the gradient


def loss(labels, outputs):
    return tf.reduce_mean(squared_error(labels, outputs))


@pytest.mark.parametrize("mode", MODES)
def test_training_by_the_rules(mode):
    model = keras.Sequential([keras.Input((1,)), Weighted()])
    model.compile(keras.optimizers.SGD(0.001), loss, **MODES[mode])
    x, labels = np.array([[1.0], [3.0]]), np.array([[1.0], [2.0]])
    model.fit(x, labels, epochs=1, batch_size=2, verbose=0)
    # error = 2 w x - label = (1, 4); dy = 4 error / 2; dw = sum(x · 20 dy) · 10
    dw = (1 * 20 * 2 + 3 * 20 * 8) * 10
    assert model.get_weights()[0][0] == pytest.approx([1 - 0.001 * dw])


def test_a_lambda_layer_and_the_functional_interface():
    inputs = keras.Input((2,))
    outputs = keras.layers.Lambda(doubled, output_shape=(2,))(inputs)
    model = keras.Model(inputs, outputs)
    x = tf.ones((3, 2))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = model(x)
    assert tape.gradient(y, x).numpy() == pytest.approx(np.full((3, 2), 20))


SCRIPT = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf
{load}
x = tf.constant([[3.0]])
with tf.GradientTape() as outer:
    outer.watch(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = model(x)
    first = tape.gradient(y, x)
second = outer.gradient(first, x)
print("RESULT", *(float(tf.reduce_sum(g)) for g in (y, first, second)))
import sys
print("LOADED", "gradsmith" in sys.modules)
"""


def in_a_fresh_process(load):
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(load=load)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    lines = dict(line.split(" ", 1) for line in run.stdout.splitlines() if " " in line)
    return [float(part) for part in lines["RESULT"].split()], lines["LOADED"]


@gs.custom_gradient
def cubed(x):
    square = x * x
    return square * x, lambda dy: 30 * square * dy


@keras.saving.register_keras_serializable("tests")
class Cubed(keras.layers.Layer):
    def call(self, x):
        return cubed(x)


def test_a_keras_file(tmp_path):
    model = keras.Sequential([keras.Input((1,)), Cubed()])
    model.save(tmp_path / "model.keras")
    load = (
        "import keras\n"
        f"from {__name__} import Cubed\n"
        f"model = keras.models.load_model({str(tmp_path / 'model.keras')!r})"
    )
    assert in_a_fresh_process(load)[0] == [27, 270, 180]


@keras.saving.register_keras_serializable("tests")
@gs.custom_gradient
def tenfold_relu(x):
    y = tf.nn.relu(x)
    return y, lambda dy: 10 * dy * tf.sign(y)


@keras.saving.register_keras_serializable("tests")
@gs.python_op
def half_square(labels, outputs):
    return (outputs - labels) ** 2 / 2


half_square.vjp(lambda dy, y, labels, outputs: (None, dy * (outputs - labels)))


def model_of_operations(activation):
    dense = keras.layers.Dense(1, activation, kernel_initializer="ones")
    model = keras.Sequential([keras.Input((1,)), dense])
    model.compile("sgd", half_square, jit_compile=False)
    return model


# Keras' own, when it saves a variable
saves_variables = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"
)


@saves_variables
def test_a_keras_file_with_operations_as_activation_and_loss(tmp_path):
    model = model_of_operations(tenfold_relu)
    model.save(tmp_path / "model.keras")
    load = (
        "import keras\n"
        f"import {__name__} as module\n"
        f"model = keras.models.load_model({str(tmp_path / 'model.keras')!r})\n"
        "assert model.layers[0].activation is module.tenfold_relu\n"
        "assert model.loss is module.half_square\n"
        "model.fit(tf.constant([[1.0]]), tf.constant([[1.0]]), verbose=0)"
    )
    # The error was 0
    assert in_a_fresh_process(load)[0] == [3, 10, 0]


@saves_variables
def test_a_keras_file_with_an_operation_that_is_not_there(tmp_path):
    @gs.custom_gradient
    def nowhere(x):
        return x, lambda dy: dy

    path = tmp_path / "model.keras"
    model_of_operations(nowhere).save(path)
    # Keras raises its own, with ours at the end
    with pytest.raises(TypeError, match="'nowhere', which is not registered"):
        keras.models.load_model(path)
    loaded = keras.models.load_model(path, custom_objects={"nowhere": nowhere})
    assert loaded.layers[0].activation is nowhere


def test_an_exported_model(tmp_path):
    model = keras.Sequential([keras.Input((1,)), Cubed()])
    model.export(tmp_path / "model", verbose=False)
    load = f"model = tf.saved_model.load({str(tmp_path / 'model')!r}).serve"
    found, loaded = in_a_fresh_process(load)
    assert found == [27, 270, 180]
    assert loaded == "False"
