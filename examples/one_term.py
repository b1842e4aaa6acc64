"""Another gradient in one term of a loss.

The weights are to serve twice: as they are, and rounded to eighths. Rounding has the
gradient 0, so its term teaches nothing; with a straight-through gradient in this term,
and nowhere else, both fit. The functions are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp

X = np.random.default_rng(0).normal(size=(64, 3))
Y = X @ np.array([0.30, -0.70, 1.45])


def misfit(w):
    x, y = (gnp.asarray(a, dtype=w.dtype, like=w) for a in (X, Y))
    return gnp.mean((gnp.matmul(x, w) - y) ** 2)


def rounded_misfit(w):
    return misfit(gnp.round(8 * w) / 8)


def straight_through(dy, y, x):
    return dy


def trained(rounded):
    w = np.zeros(3)
    for _ in range(100):
        w = w - 0.1 * gs.grad(lambda w: 0.01 * misfit(w) + rounded(w))(w)
    return w


def report() -> Iterator[str]:
    through = gs.override(rounded_misfit, {gnp.round: straight_through})
    for name, rounded in (("plain", rounded_misfit), ("straight-through", through)):
        w = trained(rounded)
        yield (
            f"{name:16}  rounded weights {np.round(8 * w) / 8}, "
            f"misfit {rounded_misfit(w):.4f}"
        )
    yield f"{through.record.count()} calls of gnp.round were changed"


if __name__ == "__main__":
    print(*report(), sep="\n")
