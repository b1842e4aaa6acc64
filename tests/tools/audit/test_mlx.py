"""gs.audit on MLX."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp

mx = pytest.importorskip("mlx.core")


def test_a_function_of_mlx():
    report = gs.audit(mx.tanh, (-1, 1), points=300, reference=np.tanh)
    assert report.framework == "MLX"
    assert 0 < report.value.max_ulp < 4


def test_an_operation_of_ours():
    @gs.custom_gradient
    def naive(x):
        y = gnp.log(1 + x)
        return y, lambda dy: dy / (1 + x)

    report = gs.audit(naive, (0.0, 1e-3), framework="mlx", points=300)
    assert not report.value.ok  # log(1 + x) loses the digits of a small x
    assert report.gradient.ok
