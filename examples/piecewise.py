"""A condition per element: 2x above 0, x otherwise, with the gradient chosen at 0.

At the kink every slope between 1 and 2 is a subgradient; this one takes 1.5.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import gradsmith as gs


@gs.custom_gradient
def bent(x):
    def grad(dy):
        return np.select([x > 0, x < 0], [2 * dy, dy], default=1.5 * dy)

    return np.where(x > 0, 2 * x, x), grad


def report() -> Iterator[str]:
    x = np.array([-1.0, 0.0, 1.0])
    yield f"x         {x}"
    yield f"bent(x)   {bent(x)}"
    yield f"gradient  {gs.grad(lambda x: np.sum(bent(x)))(x)}"


if __name__ == "__main__":
    print(*report(), sep="\n")
