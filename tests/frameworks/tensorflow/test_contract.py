"""The contract holds in TensorFlow, with the engine's words, also while tracing."""

import re

import numpy as np
import pytest
import tensorflow as tf

import gradsmith as gs

from .cases import gradients, jvp, x3

matrix = tf.ones((2, 3))
WRAPPERS = {
    "eager": lambda fn: fn,
    "function": tf.function,
    "jit": lambda fn: tf.function(fn, jit_compile=True),
    "open": lambda fn: tf.function(fn, reduce_retracing=True),
}


def returning(gradient):
    @gs.custom_gradient
    def operation(x):
        return 2 * x, lambda dy: gradient(x, dy)

    return operation


WRONG = {
    "shape": (lambda x, dy: tf.reduce_sum(dy), "wrong shape", r"summed or averaged"),
    "transposed": (lambda x, dy: tf.transpose(dy), "wrong shape", "transposed"),
    "broadcast": (
        lambda x, dy: tf.ones((4, 1, 1)) * dy,
        "wrong shape",
        r"gs\.unbroadcast",
    ),
    "dtype": (lambda x, dy: tf.cast(dy, tf.float64), "wrong dtype", "precision"),
    "integer": (
        lambda x, dy: tf.cast(dy, tf.int32),
        "wrong dtype",
        "integers and booleans",
    ),
    "complex": (lambda x, dy: tf.cast(dy, tf.complex64), "wrong dtype", "real part"),
    "numpy": (lambda x, dy: np.ones((2, 3)), "wrong dtype", "precision"),
    "count": (lambda x, dy: (dy, dy), "wrong number", "array argument"),
    "text": (lambda x, dy: "gradient", "not an array", "a gradient is an array"),
    "function": (lambda x, dy: lambda: dy, "not an array", "call it"),
}


@pytest.mark.parametrize("wrap", ["eager", "function"])
@pytest.mark.parametrize("what", WRONG)
def test_wrong_gradients(what, wrap):
    gradient, wrong, cause = WRONG[what]
    fn = WRAPPERS[wrap](returning(gradient))
    with pytest.raises(gs.GradientContractError, match=wrong) as error:
        gradients(fn, matrix)
    assert "operation 'operation'" in str(error.value)
    assert re.search(cause, str(error.value))


def test_a_wrong_gradient_inside_of_a_function_keeps_its_words():
    fn = returning(lambda x, dy: tf.reduce_sum(dy))

    @tf.function
    def run(x):
        return gradients(fn, x)

    with pytest.raises(gs.GradientContractError, match="expected: shape") as error:
        run(matrix)
    assert str(error.value).startswith("the gradient of operation 'operation' for 'x'")


@pytest.mark.parametrize("wrap", ["eager", "function", "jit"])
def test_a_numpy_gradient_of_the_right_kind(wrap):
    fn = WRAPPERS[wrap](returning(lambda x, dy: np.full((2, 3), 7, np.float32)))
    assert gradients(fn, matrix)[0].numpy() == pytest.approx(np.full((2, 3), 7))


def test_an_open_axis_fits_any_length():
    open_ = [tf.TensorSpec([None, 3], tf.float32)]
    right = tf.function(returning(lambda x, dy: 10 * dy), input_signature=open_)
    assert gradients(right, matrix)[0].numpy() == pytest.approx(np.full((2, 3), 10))
    wrong = tf.function(returning(lambda x, dy: dy[:, :2]), input_signature=open_)
    with pytest.raises(gs.GradientContractError, match=r"shape \(None, 3\)"):
        gradients(wrong, matrix)


def test_wrong_outputs_of_a_body():
    @gs.custom_gradient
    def forgotten(x):
        return x

    for wrap in (WRAPPERS["eager"], WRAPPERS["function"]):
        with pytest.raises(gs.GradientContractError, match="return y, grad"):
            wrap(forgotten)(x3)


def test_a_wrong_tangent():
    @gs.operation
    def double(x):
        return 2 * x

    double.jvp(lambda dx, y, x: tf.reduce_sum(dx))
    for fn in (double, tf.function(double)):
        with pytest.raises(gs.GradientContractError, match="tangent of operation"):
            jvp(fn, x3, x3)


@pytest.mark.parametrize("wrap", ["eager", "function"])
def test_the_users_own_exception_passes_through(wrap):
    @gs.custom_gradient
    def fails(x):
        raise ValueError("mine")

    @gs.custom_gradient
    def fails_later(x):
        def grad(dy):
            raise ValueError("mine")

        return x, grad

    wrapped = WRAPPERS[wrap]
    with pytest.raises(ValueError, match="mine") as error:
        wrapped(lambda x: fails(x))(x3)
    assert error.value.args == ("mine",)
    assert error.value.__notes__ == ["raised by the body of operation 'fails'"]
    with pytest.raises(ValueError, match="mine") as error:
        wrapped(lambda x: gradients(fails_later, x))(x3)
    assert "raised by the gradient of operation 'fails_later'" in error.value.__notes__


@pytest.mark.parametrize(
    ("body", "way_out"),
    [
        (lambda x: x if tf.reduce_sum(x) > 0 else -x, "gnp.where"),
        (lambda x: np.exp(x), "gradsmith.numpy"),
        (lambda x: x * float(tf.reduce_sum(x)), "gradsmith.numpy"),
        (lambda x: tf.constant(x.numpy()), "gradsmith.numpy"),
    ],
)
def test_a_body_that_looks_at_values_while_traced(body, way_out):
    operation = gs.with_gradient(body, lambda dy, y, x: dy)
    assert gradients(operation, x3)[0].numpy() == pytest.approx([1, 1, 1])
    kinds = (TypeError, NotImplementedError, AttributeError)
    with pytest.raises(kinds) as error:
        tf.function(lambda x: operation(x))(x3)
    notes = "\n".join(error.value.__notes__)
    assert "body of operation" in notes
    assert way_out in notes
    assert "gs.python_op" in notes
