"""Modules of TensorFlow are checked with their variables."""

from __future__ import annotations

import pytest
import tensorflow as tf

import gradsmith as gs

X = tf.constant([[1.0, -2.0, 3.0], [0.5, 1.5, -1.0]])


class Dense(tf.Module):
    """A layer with a rule, times `factor` for its weights."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.weight = tf.Variable([[0.5, -1.0], [2.0, 0.25], [1.0, 1.5]])
        self.bias = tf.Variable([0.1, 0.2])
        self.steps = tf.Variable(3)  # an integer has no gradient
        self.factor = factor

    def __call__(self, x):
        return self.product(x, tf.convert_to_tensor(self.weight)) + self.bias

    def product(self, x, w):
        @tf.custom_gradient
        def multiply(x, w):
            def grad(dy):
                dw = tf.matmul(x, dy, transpose_a=True)
                return tf.matmul(dy, w, transpose_b=True), self.factor * dw

            return tf.matmul(x, w), grad

        return multiply(x, w)


class Stack(tf.Module):
    """Modules inside of a module."""

    def __init__(self, factor: float = 1.0) -> None:
        super().__init__()
        self.layers = [Dense(factor)]
        self.scale = tf.Variable([2.0, 3.0])

    def __call__(self, x):
        return tf.nn.softplus(self.layers[0](x)) * self.scale


@pytest.mark.parametrize("kind", [Dense, Stack])
def test_a_module_is_checked_with_its_variables(kind):
    module = kind()
    before = [v.numpy() for v in module.variables]
    report = gs.check.options(seconds=90)(module, X)
    assert report.verdict in ("right", "right, with limits"), report
    for value, variable in zip(before, module.variables, strict=True):
        assert (variable.numpy() == value).all()
    wrong = gs.check.options(seconds=90)(kind(1.5), X)
    assert wrong.verdict == "wrong", wrong
    assert "weight" in (wrong.findings[0].argument or "")
