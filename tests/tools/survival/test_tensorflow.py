"""What TensorFlow's own mechanism does with a rule."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
from benchmarks.survival import survey

tf = pytest.importorskip("tensorflow")

X = np.float32([0.5, 1.5, -2.0])


@tf.custom_gradient
def square(x):
    return x * x, lambda dy: 2 * x * dy


@pytest.fixture(scope="module")
def survival():
    return dict(survey("tensorflow").columns)["tf.custom_gradient"]


def test_what_tensorflow_drops(survival):
    """tf#65839: a keyword call; and forward mode, except over a tf.function."""
    dropped = [o.transformation for o in survival.outcomes if o.verdict == "dropped"]
    assert dropped == [
        "ForwardAccumulator",
        "ForwardAccumulator in tf.function",
        "keyword call",
    ]
    assert not survival.ok


def test_what_tensorflow_refuses(survival):
    """tf#77559: keywords in a graph."""
    refused = [o for o in survival.outcomes if o.verdict == "refused"]
    assert [o.transformation for o in refused] == ["keyword call in tf.function"]
    assert refused[0].detail.startswith("ValueError: The custom_gradient decorator")


def test_all_else_is_honoured(survival):
    assert survival.count("honoured") == len(survival.outcomes) - 4 == 14


def test_several_inputs_and_outputs():
    @tf.custom_gradient
    def op(params, x):
        def grad(dz, dw):
            return {"w": dz * x, "b": dz}, dz * params["w"] + 2 * x * dw

        return (params["w"] * x + params["b"], x * x), grad

    params = {"w": tf.constant([1.0, 2.0]), "b": tf.Variable([3.0, 4.0])}
    survival = gs.survives(
        op,
        params,
        tf.constant([0.5, 0.25]),
        only=["GradientTape", "tape in tf.function"],
    )
    assert survival.count("honoured") == 2, str(survival)


def test_sparse_gradients_integers_and_float64():
    @tf.custom_gradient
    def lookup(table, index):
        def grad(dy):
            return tf.IndexedSlices(dy, index, tf.shape(table)), None

        return tf.gather(table, index), grad

    survival = gs.survives(
        lookup, np.eye(3), np.array([2, 0]), only=["GradientTape", "nested tapes"]
    )
    assert survival["GradientTape"].verdict == "honoured", str(survival)


def test_captured_variables():
    v = tf.Variable(3.0)

    @tf.custom_gradient
    def scaled(x):
        def grad(dy, variables=None):
            return dy * v, [tf.reduce_sum(dy * x)]

        return x * v, grad

    survival = gs.survives(scaled, X, only=["GradientTape", "tf.function"])
    assert survival.count("honoured") == 2, str(survival)


def test_a_decorated_method():
    class Layer:
        @tf.custom_gradient
        def square(self, x):
            return x * x, lambda dy: 2 * x * dy

    survival = gs.survives(Layer().square, X, only=["GradientTape"])
    assert survival["GradientTape"].verdict == "honoured"


def test_the_operation_is_left_as_it_was():
    before = dict(vars(square))
    gs.survives(square, X, only=["GradientTape", "tf.function"])
    assert vars(square) == before
