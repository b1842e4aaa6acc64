"""What is slow and called often is compiled, unless that is not the same."""

import time

import numpy as np
import pytest
import tensorflow as tf

import gradsmith as gs
from gradsmith.frameworks.tensorflow import calculus

X, VS = ([tf.constant([0.5, 1.0, 2.0], tf.float64)] for _ in range(2))


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Compile after 0.3 s, whatever it is."""
    monkeypatch.setattr(calculus, "_OFTEN", 0.3)
    monkeypatch.setattr(calculus, "_RARE", 0.3)


class Slow:
    """A function that takes long when its operations run one by one."""

    def __init__(self, body):
        self.body, self.calls = body, 0

    def __call__(self, xs):
        self.calls += 1
        start = time.process_time()
        while tf.executing_eagerly() and time.process_time() < start + 0.02:
            pass
        return [self.body(x) for x in xs]


def branching(x):
    return tf.sin(x) if float(x[0]) > 0 else x


class Counting:
    """Another value when it is traced."""

    def __call__(self, x):
        return tf.sin(x) if tf.executing_eagerly() else tf.cos(x)


@pytest.mark.parametrize("body", [tf.sin, branching, Counting()])
@pytest.mark.parametrize("way", ["value", "vjp", "second"])
def test_compiled_only_if_it_is_the_same(body, way):
    fn, dys = Slow(body), [tf.constant([1.0, 2.0, -1.0], tf.float64)]

    def result():
        if way == "value":
            return calculus.value(fn, X)[0]
        if way == "vjp":
            return calculus.vjp(fn, X)[1](dys)[0]
        return calculus.second(fn, X, dys, VS)[0][0]

    values = [result().numpy() for _ in range(40)]
    assert all(np.allclose(values[0], each, rtol=1e-12) for each in values)
    if body is tf.sin:
        assert fn.calls < 36
    else:
        assert fn.calls >= 40


def test_compiled_once_for_all_lengths():
    fn = Slow(tf.sin)
    for _ in range(30):
        calculus.vjp(fn, X)[1](X)
    before = fn.calls
    for n in (1, 4, 1000):
        x = [tf.constant(np.linspace(1, 2, n))]
        for _ in range(5):
            found = calculus.vjp(fn, x)[1](x)[0]
            np.testing.assert_allclose(found, x[0] * np.cos(x[0]), rtol=1e-12)
    # For each length once, to see that it is the same, and its value until compiled
    assert fn.calls - before <= 3 * 2 + 1 + 15


def test_what_looks_at_the_length_is_not_compiled_for_others():
    fn = Slow(lambda x: tf.cos(x) if x.shape[0] == 1 else tf.sin(x))
    for _ in range(30):
        calculus.value(fn, X)
    one = [tf.constant([0.5], tf.float64)]
    for _ in range(3):
        np.testing.assert_allclose(calculus.value(fn, one)[0], np.cos([0.5]))


def test_what_is_quick_is_not_compiled():
    calls = []

    def fn(xs):
        calls.append(1)
        return [tf.sin(x) for x in xs]

    for _ in range(50):
        calculus.value(fn, X)
    assert len(calls) == 50


def test_what_was_traced_to_look_at_it_is_compiled():
    class SlowToTrace(Slow):
        traces = 0

        def __call__(self, xs):
            start = time.process_time()
            while not tf.executing_eagerly() and time.process_time() < start + 0.15:
                pass
            self.traces += not tf.executing_eagerly()
            return super().__call__(xs)

    fn = SlowToTrace(tf.sin)
    calculus.traits(fn, X)
    for _ in range(40):
        calculus.value(fn, X)
    assert fn.traces == 1
    assert fn.calls < 20


def test_gradients_that_compute_again_are_no_rules_of_the_user():
    op = tf.recompute_grad(lambda x: tf.sin(x) * x)
    report = gs.check(op, X[0])
    assert report.verdict == "right, with limits", report
    assert all(limit.refused for limit in report.limits)  # TensorFlow says why
