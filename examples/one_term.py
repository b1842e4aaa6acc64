"""A gradient replaced for one term of a loss only.

The weights are to serve twice: as they are, and rounded to eighths. Rounding has the
gradient 0, so its term teaches nothing; with a straight-through gradient in this term,
and nowhere else, both fit. The functions are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import gradsmith as gs

X = np.random.default_rng(0).normal(size=(64, 3))
Y = X @ np.array([0.30, -0.70, 1.45])


def misfit(w):
    return np.mean((X @ w - Y) ** 2)


def rounded_misfit(w):
    return misfit(np.round(8 * w) / 8)


def straight_through(dy, y, x):
    return dy


def trained(rounded):
    w = np.zeros(3)
    for _ in range(100):
        w = w - 0.1 * gs.grad(lambda w: 0.01 * misfit(w) + rounded(w))(w)
    return w


def report() -> Iterator[str]:
    through = gs.override(rounded_misfit, {np.round: straight_through})
    for name, rounded in (("plain", rounded_misfit), ("straight-through", through)):
        w = trained(rounded)
        yield (
            f"{name:17} rounded weights {np.round(8 * w) / 8}: "
            f"misfit {rounded_misfit(w):.4f}"
        )
    yield f"{through.record.count('np.round')} calls of np.round were changed"


if __name__ == "__main__":
    print(*report(), sep="\n")
