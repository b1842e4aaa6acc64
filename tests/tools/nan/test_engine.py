"""Births on the embedded engine."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import gradsmith as gs
from gradsmith.core import hooks


def entropy(p):
    logs = np.log(p)
    return -np.sum(p * logs)


def softmax(x):
    e = np.exp(x)
    return e / np.sum(e)


def masked(x, w):
    terms = x * np.log(w)
    return np.sum(np.where(w > 0, terms, 0.0))


@gs.custom_gradient
def root(x):
    y = np.sqrt(x)

    def grad(dy):
        slope = 2 * y
        return dy / slope

    return y, grad


@gs.operation
def shifted_log(x):
    shifted = x - 1
    return np.log(shifted)


@shifted_log.vjp
def _(dy, y, x):
    shifted = x - 1
    return dy / (shifted - 1)


def test_forward():
    report = gs.find_nan(entropy, np.array([0.5, 0.0]))
    assert (report.operation, report.phase, report.kind) == ("np.log", "forward", "inf")
    assert report.where.file == __file__
    assert report.where.function == "entropy"
    assert report.where.source == "logs = np.log(p)"
    assert str(report.inputs[0]) == "x[1] = 0.0"
    assert report.reaches == ("the value",)
    assert "becomes NaN in np.multiply" in report.explanation
    assert not report.masked


def test_the_first_one_counts():
    report = gs.find_nan(softmax, np.array([1000.0, 0.0]))
    assert report.where.source == "e = np.exp(x)"
    assert [(stop.operation, stop.kind) for stop in report.trail] == [
        ("np.exp", "inf"),
        ("np.divide", "nan"),
    ]


def test_masked_branch():
    report = gs.find_nan(masked, np.array([1.0, 1.0]), np.array([0.0, 2.0]))
    assert (report.operation, report.phase) == ("np.multiply", "backward")
    assert report.where.source == "terms = x * np.log(w)"
    assert [value.name for value in report.inputs] == ["dy", "x1", "x2"]
    assert report.masked
    assert report.mask.source.startswith("return np.sum(np.where")
    assert "0 * inf is NaN" in report.explanation
    assert "np.where(mask, f(safe), 0.0)" in report.repair
    assert report.reaches == ("the gradient of x",)


def test_the_engines_edges_are_safe():
    report = gs.find_nan(lambda x: np.where(x > 0, np.sqrt(x), 0.0), np.array([0.0]))
    assert report.ok


def test_rule_of_a_closure():
    report = gs.find_nan(lambda x: np.sum(3 * root(x)), np.array([0.0, 1.0]))
    assert (report.operation, report.phase) == ("np.divide", "backward")
    assert report.where.source == "return dy / slope"
    assert [str(x) for x in report.inputs] == ["x1[0] = 3.0", "x2[0] = 0.0"]


def test_body_and_rule_of_an_operation():
    report = gs.find_nan(shifted_log, np.array([1.0, 3.0]))
    assert report.where.source == "return np.log(shifted)"
    report = gs.find_nan(shifted_log, np.array([2.0, 3.0]))
    assert report.phase == "backward"
    assert report.where.source == "return dy / (shifted - 1)"


def test_variables():
    w = gs.Variable([0.0, 1.0], name="w")
    report = gs.find_nan(lambda x: np.sum(root(w) * x), np.array([1.0, 1.0]))
    assert report.reaches == ("the gradient of w",)


def test_sum_of_gradients():
    def twice(x):
        return 1e308 * np.sum(x) + 1e308 * np.sum(x - 0.5)

    report = gs.find_nan(twice, np.array([0.0]))
    assert report.operation.startswith("the sum of the gradients")
    assert report.phase == "backward"


def test_clean():
    report = gs.find_nan(entropy, np.array([0.5, 0.5]))
    assert report.ok
    assert not report.found
    assert report.where is None
    assert report.notes == ()


def test_harmless():
    report = gs.find_nan(lambda x: 1 / (1 + np.exp(x)), np.array([1000.0]))
    assert report.ok
    assert "makes inf on the way" in report.notes[0]


def test_nan_was_given():
    report = gs.find_nan(entropy, np.array([0.5, np.nan]))
    assert (report.phase, report.operation) == ("argument", "p")
    assert str(report.inputs[0]) == "p[1] = nan"


def test_given_but_masked():
    report = gs.find_nan(lambda x: np.nansum(x), np.array([0.5, np.nan]))
    assert report.ok
    assert report.notes == ("x[1] = nan was given, and does not reach the results",)


def test_an_inf_on_purpose_is_not_to_blame():
    mask = np.array([-np.inf, -np.inf])

    def attention(x):
        scores = x + mask
        weights = np.exp(scores - np.max(scores))
        return weights / np.sum(weights)

    report = gs.find_nan(attention, np.array([1.0, 2.0]))
    assert (report.operation, report.kind) == ("np.subtract", "nan")
    assert "was a constant of np.add" in report.explanation


def test_elements_are_told_apart():
    mask = np.array([0.0, -np.inf])

    def f(x):
        scores = x + mask
        return 1 / scores

    report = gs.find_nan(f, np.array([0.0, 1.0]))
    assert report.where.source == "return 1 / scores"
    assert str(report.inputs[0]) == "x2[0] = 0.0"
    report = gs.find_nan(np.log, np.array([0.0, np.nan]))  # the NaN is not from there
    assert (report.phase, str(report.inputs[0])) == ("argument", "x[1] = nan")


def test_a_constant():
    report = gs.find_nan(lambda x: x * np.array([np.nan, 1.0]), np.array([1.0, 2.0]))
    assert report.phase == "constant"


def test_tensors_trees_and_keywords():
    def f(parts, *, scale):
        return np.sum(np.log(parts["a"])) * scale

    report = gs.find_nan(f, {"a": gs.Tensor([0.0]), "b": 1}, scale=2.0)
    assert report.operation == "np.log"
    report = gs.find_nan(f, {"a": gs.Tensor([np.nan]), "b": 1}, scale=2.0)
    assert report.operation == "parts['a']"


def test_exceptions_pass_and_all_is_undone():
    with pytest.raises(ZeroDivisionError):
        gs.find_nan(lambda x: 1 / 0, np.array([1.0]))
    assert not hooks.BODY.wrappers
    assert not hooks.RULE.wrappers
    assert isinstance(root(np.array([4.0])), np.ndarray)


def test_bad_input():
    with pytest.raises(gs.GradsmithError, match="needs inputs"):
        gs.find_nan(entropy)
    with pytest.raises(gs.GradsmithError, match="needs an operation"):
        gs.find_nan(3, np.array([1.0]))


def test_no_class_is_made_in_each_call():
    """Types are remembered for ever, and with them what they hold."""

    def classes():
        gc.collect()
        return sum(issubclass(type(x), type) for x in gc.get_objects())

    run = lambda: gs.find_nan(
        gs.custom_gradient(lambda x: (x, lambda dy: dy)), np.ones(3)
    )
    run()
    before = classes()
    for _ in range(3):
        run()
    assert classes() == before
