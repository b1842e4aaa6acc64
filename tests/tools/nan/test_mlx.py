"""find_nan on MLX."""

from __future__ import annotations

import pytest

import gradsmith as gs
import gradsmith.numpy as gnp

mx = pytest.importorskip("mlx.core")


def test_a_value():
    def entropy(p):
        logs = mx.log(p)
        return -(p * logs).sum()

    report = gs.find_nan(entropy, mx.array([0.0, 1.0]))
    assert (report.operation, report.phase) == ("mx.log", "forward")
    assert report.where.source == "logs = mx.log(p)"
    assert str(report.inputs[0]) == "x[0] = 0.0"


def test_a_masked_branch():
    def masked(x):
        return mx.where(x > 0, mx.sqrt(x), 0.0).sum()

    report = gs.find_nan(masked, mx.array([1.0, 0.0]))
    assert (report.operation, report.phase) == ("mx.sqrt", "backward")
    assert "mx.where" in str(report)


def test_a_line_of_a_rule():
    @gs.custom_gradient
    def root(x):
        y = gnp.sqrt(x)

        def grad(dy):
            return dy / (2 * y)

        return y, grad

    report = gs.find_nan(lambda x: root(x).sum(), mx.array([1.0, 0.0]))
    assert report.phase == "backward"
    assert report.where.source == "return dy / (2 * y)"


def test_compiled_and_mapped_functions():
    compiled = mx.compile(lambda x: mx.log(x - 1))
    report = gs.find_nan(lambda x: compiled(x).sum(), mx.array([2.0, 0.5]))
    assert report.operation == "mx.log"
    mapped = lambda x: mx.vmap(lambda each: mx.log(each))(x).sum()
    assert gs.find_nan(mapped, mx.array([2.0, 0.0])).operation == "mx.vmap"


def test_all_is_well_and_nothing_stays_replaced():
    before = mx.exp, mx.array.__add__
    assert gs.find_nan(lambda x: (mx.exp(x) + x).sum(), mx.array([1.0])).ok
    assert (mx.exp, mx.array.__add__) == before
