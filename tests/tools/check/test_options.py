"""What is differentiated, what is data, and more inputs of the caller's kind."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf
import torch

import gradsmith as gs

from .helpers import native

X = np.random.default_rng(0).normal(size=(3, 4))
ARRAYS = {"torch": torch.tensor, "jax": jnp.asarray, "tensorflow": tf.constant}


def half_wrong(framework):
    """x * w, whose gradient by w is wrong."""
    op = native(framework, lambda x, w: x * w, lambda dy, y, x, w: (dy * w, 2 * dy * x))
    op = getattr(op, "apply", op)
    return lambda x, w: op(x, w)


@pytest.mark.parametrize("framework", ARRAYS)
@pytest.mark.parametrize(
    "options", [{"wrt": "x"}, {"wrt": 0}, {"data": "w"}, {"data": [1]}, {"wrt": [-2]}]
)
def test_what_is_data_is_not_differentiated(framework, options):
    xs = [ARRAYS[framework](each) for each in (X, X + 3)]
    report = gs.check.options(**options)(half_wrong(framework), *xs)
    assert report.ok, report
    assert {limit.what for limit in report.limits} <= {"forward mode"}, report


def test_what_is_wrong_is_wrong_alone():
    xs = torch.tensor(X), torch.tensor(X + 3)
    report = gs.check.options(wrt="w")(half_wrong("torch"), *xs)
    assert {finding.argument for finding in report.findings} == {"w"}


def test_no_gradient_for_data_is_no_limit():
    loss = native(
        "torch", lambda x, labels: x * labels, lambda dy, y, x, t: (dy * t, None)
    )
    report = gs.check.options(data=1)(loss, torch.tensor(X), torch.tensor(X + 3))
    assert "no gradient" not in [limit.what for limit in report.limits], report


def test_data_keeps_its_values():
    seen = []

    def weighted(x, weights):
        seen.append(np.unique(np.asarray(weights)))
        return x * weights

    gs.check.options(data="weights")(weighted, X, np.full((3, 4), 0.25))
    assert all(values.size <= 1 for values in seen)
    assert {float(value) for values in seen for value in values} == {0.25}


def test_a_parameter_of_a_module():
    module = torch.nn.Linear(4, 2)
    report = gs.check.options(wrt="weight")(module, torch.tensor(X).float())
    assert report.verdict == "right"


def test_a_part_of_a_tree():
    def f(params):
        return params["a"] * np.exp(params["b"])

    params = {"a": X, "b": X + 1}
    assert gs.check.options(wrt="params")(f, params).ok
    with pytest.raises(gs.GradsmithError, match="nothing is left"):
        gs.check.options(data="params")(f, params)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"wrt": "z"}, r"wrt='z': 'z' is no argument with floating numbers; these are"),
        (
            {"data": 5},
            r"data=5: 5 is no argument with floating numbers; these are x, w",
        ),
        ({"wrt": "x", "data": "x"}, "wrt= and data= both name x"),
        ({"data": ("x", "w")}, "nothing is left to differentiate by"),
    ],
)
def test_names_that_are_not_there(options, said):
    with pytest.raises(gs.GradsmithError, match=said):
        gs.check.options(**options)(lambda x, w: x * w, X, X)


@pytest.mark.parametrize("options", [{"wrt": 1.5}, {"data": [None]}, {"inputs": 3}])
def test_options_of_another_kind(options):
    with pytest.raises(gs.GradsmithError, match="expected"):
        gs.check.options(**options)


# --- more inputs


@gs.custom_gradient
def rare(x):
    """Wrong on a region that nothing hints at."""
    hidden = np.abs(np.sum(x) - 12.34) < 0.1
    return np.sin(x), lambda dy: dy * np.cos(x) * (1.5 if hidden else 1.0)


def near_the_region(random):
    x = random.normal(size=4)
    return (x + (12.34 - np.sum(x)) / 4,)


def test_more_inputs_find_more():
    assert gs.check(rare, X[0]).verdict == "right"
    report = gs.check.options(inputs=near_the_region)(rare, X[0])
    assert report.verdict == "wrong"
    assert report.findings[0].scenario == "number 1 of inputs="


@pytest.mark.parametrize(
    "inputs",
    [
        [X[0], X[1]],
        ((x,) for x in X),
        [{"x": X[0]}],
        lambda random: random.normal(size=4),
    ],
    ids=["list", "generator", "keywords", "function"],
)
def test_kinds_of_inputs(inputs):
    report = gs.check.options(inputs=inputs)(lambda x: np.tanh(x), X[2])
    assert report.verdict == "right"
    assert "number 1 of inputs=" in [check.scenario for check in report.checks]


def test_inputs_alone():
    assert gs.check.options(inputs=[X, X + 1])(np.tanh).verdict == "right"


def test_inputs_of_another_structure():
    with pytest.raises(gs.GradsmithError, match="number 1"):
        gs.check.options(inputs=[(X, X)])(lambda *xs: np.tanh(xs[0]), X)
