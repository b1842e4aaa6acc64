"""`kernels` of losses, which are functions around an operation."""

from __future__ import annotations

import numpy as np
import pytest

import gradsmith as gs
from gradsmith import ops

X = np.linspace(-2.0, 2.0, 1200, dtype="float32").reshape(12, 100)
LABELS, SHARES = np.arange(12), np.full_like(X, 0.01)
LOSSES = {
    "binary_cross_entropy_with_logits": (X, SHARES),
    "cross_entropy": (X, LABELS),
    "focal": (X, (X > 0).astype("float32")),
    "gaussian_nll": (X, SHARES, SHARES),
    "huber": (X, SHARES),
    "kl_divergence": (X, SHARES),
    "poisson_nll": (X, SHARES),
    "safe_where": (X > 0, np.log, X),
}


@pytest.mark.parametrize("name", LOSSES)
def test_the_loops_of_a_loss(name):
    shown = str(getattr(ops, name).kernels(*LOSSES[name]))
    assert shown.startswith("def ")
    assert "_gradient(" in shown


def test_a_call_without_kernels_says_so():
    with pytest.raises(gs.GradsmithError, match="no kernels for this call"):
        ops.safe_where.kernels(X > 0, np.log, X, fill=X)
