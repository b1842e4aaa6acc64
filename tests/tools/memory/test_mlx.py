"""What an MLX gradient keeps, by MLX's own functions and by the portable ones."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
import gradsmith.numpy as gnp

mx = pytest.importorskip("mlx.core")
X = mx.array(np.linspace(0.1, 0.9, 1000, dtype=np.float32))


@pytest.mark.parametrize("xp", [mx, gnp], ids=["mx", "gnp"])
@pytest.mark.parametrize("name", ["exp", "sin", "abs", "tanh", "log", "sqrt"])
def test_functions_are_seen_however_they_are_called(xp, name):
    def loss(x):
        return xp.sum(getattr(xp, name)(x * 2.0) * 3.0)

    report = gs.memory(loss, X)
    kept = [(row.operation, row.nbytes) for row in report.rows]
    assert (f"mx.{name}", 4000) in kept
    assert report.rows[0].place.file == __file__


def test_a_checkpoint_keeps_nothing():
    report = gs.memory(lambda x: gnp.sum(gnp.exp(gnp.tanh(x))), X)
    assert report.total > 0
    assert report.checkpointed == 0
