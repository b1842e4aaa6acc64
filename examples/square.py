"""Element-wise square, with its gradient written by hand."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import gradsmith as gs


@gs.custom_gradient
def square(x):
    def grad(dy):
        return 2 * x * dy

    return x**2, grad


def report() -> Iterator[str]:
    x = gs.Tensor([1.0, 2.0, 3.0])
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = square(x)
    yield f"x²        {y}"
    yield f"gradient  {tape.gradient(y, x)}"
    yield f"second derivative  {gs.hessian(lambda x: np.sum(square(x)))(np.ones(2))}"


if __name__ == "__main__":
    print(*report(), sep="\n")
