"""A ReLU whose gradient leaks.

The value is the plain ReLU; the leak of 0.01 keeps dead units alive in training. The
rule is not the derivative, on purpose, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp


@gs.custom_gradient(surrogate="ReLU with a leak of 0.01 in its gradient")
def leaky_gradient_relu(x):
    def grad(dy):
        return gnp.where(x > 0, dy, 0.01 * dy)

    return gnp.maximum(x, 0), grad


@leaky_gradient_relu.example
def _():
    return gs.spec("n")


def report() -> Iterator[str]:
    x = np.array([-2.0, -0.5, 0.5, 2.0])
    yield f"x         {x}"
    yield f"relu(x)   {leaky_gradient_relu(x)}"
    yield f"gradient  {gs.grad(lambda x: gnp.sum(leaky_gradient_relu(x)))(x)}"


if __name__ == "__main__":
    print(*report(), sep="\n")
