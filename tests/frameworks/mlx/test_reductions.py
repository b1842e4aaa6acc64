"""Reductions of empty arrays, which may never end in MLX itself."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith.numpy as gnp

mx = pytest.importorskip("mlx.core")
CASES = [
    (shape, axis)
    for shape in ((0,), (0, 3), (2, 0), (2, 0, 3))
    for axis in (None, *range(-len(shape), len(shape)))
]


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "any", "all"])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.filterwarnings("ignore:Mean of empty slice:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_of_nothing(name, keepdims):
    for shape, axis in CASES:
        x, options = np.ones(shape, np.float32), {"axis": axis, "keepdims": keepdims}
        found = np.array(getattr(gnp, name)(mx.array(x), **options))
        np.testing.assert_array_equal(found, getattr(np, name)(x, **options))


def test_the_gradient_of_nothing():
    for fn in (gnp.sum, gnp.prod):
        assert mx.grad(lambda x, fn=fn: fn(x))(mx.zeros((0,))).shape == (0,)
