"""A condition per element, and a chosen slope.

The value is 2x above 0 and x otherwise. At 0 every slope between 1 and 2 is a
subgradient; this one takes 1.5.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp


@gs.custom_gradient
def bent(x):
    def grad(dy):
        at_kink_or_below = gnp.where(x < 0, dy, 1.5 * dy)
        return gnp.where(x > 0, 2 * dy, at_kink_or_below)

    return gnp.where(x > 0, 2 * x, x), grad


@bent.example
def _():
    return gs.spec("n")


def report() -> Iterator[str]:
    x = np.array([-1.0, 0.0, 1.0])
    yield f"x         {x}"
    yield f"bent(x)   {bent(x)}"
    yield f"gradient  {gs.grad(lambda x: gnp.sum(bent(x)))(x)}"


if __name__ == "__main__":
    print(*report(), sep="\n")
