"""What is known of MLX's own functions and modules."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

import gradsmith as gs
from gradsmith.tools._inputs import info_of

X = np.array([[0.5, -1.25, 2.0], [1.0, 0.25, -0.5]])


@gs.custom_gradient
def tripled(x, w):
    return x * w, lambda dy: (dy * w, 3 * dy * x)  # of w it is dy * x


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.w = mx.array([[0.5, 2.0, -1.5], [1.0, -0.75, 0.25]])
        self.frozen = mx.array(2.0)
        self.freeze(keys="frozen", recurse=False)

    def __call__(self, x):
        return tripled(self.inner(x), self.w) * self.frozen


@pytest.fixture
def float64():
    with mx.stream(mx.cpu):
        yield


def test_a_module_is_checked_with_its_parameters(float64):
    layer = nn.Linear(3, 2)
    assert {*info_of(layer, "mlx").captured} == {"weight", "bias"}
    before = [np.array(x) for x in (layer.weight, layer.bias)]
    report = gs.check(layer, mx.array(X, mx.float32))
    assert report.ok, report
    for x, was in zip((layer.weight, layer.bias), before, strict=True):
        np.testing.assert_array_equal(np.array(x), was)


def test_a_wrong_gradient_of_a_parameter_is_found(float64):
    report = gs.check(Scaled(), mx.array(X, mx.float32))
    assert not report.ok
    assert "the gradient of w" in str(report), report
    assert {finding.argument for finding in report.findings} == {"w"}
