"""Declared surrogates inside of functions and models: the rest is judged."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import gradsmith as gs
import gradsmith.numpy as gnp
from gradsmith import ops
from gradsmith.tools.check.declared import declared_operations
from gradsmith.tools.check.inputs import CheckInputs
from gradsmith.tools.check.problem import problem_for

X = np.random.default_rng(0).normal(size=(3, 4))
ARRAYS = {
    "numpy": np.asarray,
    "torch": torch.tensor,
    "jax": jnp.asarray,
    "tensorflow": tf.constant,
}


@gs.operation
def sine(x):
    return gnp.sin(x)


@sine.vjp
def _(dy, y, x):
    return 1.01 * dy * gnp.cos(x)


def reversed_inside(x):
    return gnp.sum(ops.reverse(gnp.sin(x)) * x, axis=-1)


def quantized_twice(x):
    return gnp.exp(ops.round(3 * gnp.sin(x))) + ops.round(2 * x) * x


def with_a_bug(x):
    return ops.round(3 * sine(x)) * x


def with_a_bug_after(x):
    return sine(ops.reverse(x) * 2)


@pytest.mark.parametrize("framework", ARRAYS)
@pytest.mark.parametrize("function", [reversed_inside, quantized_twice])
def test_the_rest_is_right(function, framework):
    report = gs.check(function, ARRAYS[framework](X))
    assert report.verdict == "as declared", report
    assert "inside is declared a surrogate" in str(report)
    assert "first order" in [check.what for check in report.checks]


@pytest.mark.parametrize("framework", ARRAYS)
@pytest.mark.parametrize("function", [with_a_bug, with_a_bug_after])
def test_a_mistake_beside_it_is_found(function, framework):
    report = gs.check(function, ARRAYS[framework](X))
    assert report.verdict == "wrong", report


def test_in_a_model():
    class Model(torch.nn.Module):
        def __init__(self, wrong):
            super().__init__()
            self.first, self.last = torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)
            self.between = sine if wrong else torch.sin

        def forward(self, x):
            x = self.between(self.first(x))
            return self.last(ops.reverse(x) + ops.round(4 * x))

    torch.manual_seed(0)
    x = torch.tensor(X, dtype=torch.float32)
    assert gs.check(Model(wrong=False), x).verdict == "as declared"
    assert gs.check(Model(wrong=True), x).verdict == "wrong"


def test_a_rule_that_is_not_linear_inside():
    report = gs.check(lambda x: gnp.sin(ops.clip_by_value(x, -1.0, 1.0)), X)
    assert report.verdict == "as declared", report
    assert "clip_by_value inside is declared not to be linear" in str(report)


def test_alone():
    assert gs.check(ops.reverse, X).verdict == "as declared"


def test_inside_of_another_rule_it_does_not_count():
    @gs.custom_gradient
    def rounded(x):  # zero, as it is; the surrogate inside is not asked
        return ops.round(x), lambda dy: 0 * dy

    assert gs.check(rounded, 3 * X).verdict == "right"


def test_nothing_is_computed_to_find_them_in_jax():
    """Each operation of an eager call would be compiled by itself: 3 s for a series."""
    seen = []

    def function(x):
        seen.append(isinstance(x, jax.core.Tracer))
        return ops.reverse(jnp.sin(x))

    problem = problem_for(function, CheckInputs((jnp.asarray(X),), {}, ()), "jax")
    (operation,) = declared_operations(problem)
    assert operation is ops.reverse
    assert seen == [True]
