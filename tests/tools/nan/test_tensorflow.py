"""Births in TensorFlow."""

from __future__ import annotations

import pytest

import gradsmith as gs
import gradsmith.numpy as gnp

tf = pytest.importorskip("tensorflow")


def entropy(p):
    logs = tf.math.log(p)
    return -tf.reduce_sum(p * logs)


def masked(x):
    logs = tf.math.log(x)
    return tf.reduce_sum(tf.where(x > 0, logs, 0.0))


@tf.custom_gradient
def double(x):
    def grad(dy):
        half = x * 0.5
        return dy / half

    return x * 2, grad


@gs.custom_gradient
def root(x):
    y = gnp.sqrt(x)

    def grad(dy):
        slope = 2 * y
        return dy / slope

    return y, grad


def test_forward():
    report = gs.find_nan(entropy, tf.constant([0.5, 0.0]))
    assert (report.operation, report.phase, report.kind) == ("Log", "forward", "inf")
    assert report.where.file == __file__
    assert report.where.source == "logs = tf.math.log(p)"
    assert str(report.inputs[0]) == "x[1] = 0.0"
    assert "becomes NaN in Mul" in report.explanation


@pytest.mark.parametrize("wrap", [lambda fn: fn, tf.function])
def test_masked_branch(wrap):
    report = gs.find_nan(wrap(masked), tf.constant([4.0, 0.0]))
    assert (report.operation, report.phase, report.kind) == ("Log", "backward", "nan")
    assert report.where.source == "logs = tf.math.log(x)"
    assert report.trail[0].phase == "backward"  # it does not need the forward's -inf
    assert report.masked
    assert "tf.where(x > 0" in report.mask.source
    assert "tf.where(mask, f(safe), 0.0)" in report.repair
    assert report.reaches == ("the gradient of x",)


def test_native_rule():
    report = gs.find_nan(double, tf.constant([0.0, 1.0]))
    assert (report.operation, report.phase) == ("RealDiv", "backward")
    assert report.where.source == "return dy / half"


def test_rule_of_ours():
    report = gs.find_nan(lambda x: tf.reduce_sum(3 * root(x)), tf.constant([0.0, 1.0]))
    assert report.phase == "backward"
    assert report.where.source == "return dy / slope"


def test_what_the_value_survived():
    report = gs.find_nan(lambda x: 1 / (1 + tf.exp(x)), tf.constant([1000.0]))
    assert (report.operation, report.phase) == ("Exp", "backward")
    assert (
        "the inf among its inputs is from the forward pass: Exp" in report.explanation
    )


def test_variables():
    w = tf.Variable([0.0, 1.0], name="w")
    report = gs.find_nan(lambda x: tf.reduce_sum(tf.sqrt(w) * x), tf.ones(2))
    assert report.operation == "Sqrt"
    assert report.reaches == ("the gradient of w:0",)


def test_generated_code_is_not_the_users():
    def f(x):
        return tf.map_fn(lambda a: tf.math.log(a), x)

    report = gs.find_nan(f, tf.constant([0.0, 1.0]))
    assert report.where.file == __file__


def test_sum_of_gradients():
    def twice(x):
        return 3e38 * tf.reduce_sum(x) + 3e38 * tf.reduce_sum(x - 1)

    report = gs.find_nan(twice, tf.constant([0.0]))
    assert report.operation.startswith("the sum of the gradients")


def test_clean():
    assert gs.find_nan(masked, tf.constant([4.0, 1.0])).ok
    report = gs.find_nan(tf.stop_gradient, tf.constant([4.0]))
    assert report.ok
    assert "does not depend on the inputs" in report.notes[0]


def test_given():
    report = gs.find_nan(entropy, tf.constant([float("nan"), 1.0]))
    assert (report.phase, report.operation) == ("argument", "p")


def test_all_is_undone():
    x = tf.constant([4.0])
    with pytest.raises(ZeroDivisionError):
        gs.find_nan(lambda x: 1 / 0, x)
    assert not tf.config.functions_run_eagerly()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.sqrt(x)
    assert tape.gradient(y, x).numpy() == 0.25
