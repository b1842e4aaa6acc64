"""`verify=True` proves that the gradient is the plain one, or says where it is not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import gradsmith as gs

X = np.linspace(0.1, 1.0, 5)


def test_what_is_right_passes_and_draws_the_same():
    w = gs.Variable(X, name="w")
    found = []
    for verify in (False, True):
        rng = np.random.default_rng(0)

        @gs.checkpoint(verify=verify)
        def noisy(x, rng, power=2):
            return {"y": np.sum(np.sin(x) ** power * rng.normal(size=5) * w)}

        dx = gs.grad(lambda x, rng=rng, f=noisy: f(x, rng, power=3)["y"])(X)
        found.append((dx.tolist(), rng.random()))
    assert found[0] == found[1]


def test_a_counter_is_found_with_its_line():
    n = [0]

    def counting(x):
        n[0] += 1
        y = np.sin(x)
        return np.sum(y * n[0])

    with pytest.raises(gs.GradsmithError) as caught:
        gs.grad(gs.checkpoint(counting, verify=True))(X)
    message = str(caught.value)
    assert "'counting' computes something else when it is run again" in message
    assert "what differs: the value" in message
    assert "first at: np.multiply at" in message
    assert "return np.sum(y * n[0])" in message
    gs.grad(gs.checkpoint(counting))(X)  # nobody looks


def test_a_hidden_generator_is_found():
    hidden = {"n": 0.0}

    class Hides:
        __slots__ = ()

        def draw(self):
            hidden["n"] += 1
            return hidden["n"]

    source = Hides()
    fn = gs.checkpoint(lambda x: np.sum(x * x) + source.draw(), verify=True)
    with pytest.raises(gs.GradsmithError, match="what differs"):
        gs.grad(fn)(X)


def test_a_gradient_that_differs_where_the_value_does_not():
    runs = itertools.count()

    @gs.custom_gradient
    def odd(x):
        n = next(runs)
        return x * 1.0, lambda dy: n * dy

    with pytest.raises(gs.GradsmithError, match="the gradient for argument 0"):
        gs.grad(gs.checkpoint(lambda x: np.sum(odd(x)), verify=True))(X)


def test_nothing_is_run_twice_where_nothing_is_differentiated():
    calls = []
    gs.checkpoint(lambda x: calls.append(0) or x, verify=True)(X)
    assert len(calls) == 1
