"""The square of each element."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import gradsmith as gs


@gs.custom_gradient
def square(x):
    def grad(dy):
        return 2 * x * dy

    return x**2, grad


@square.example
def _():
    return gs.spec("n")


def report() -> Iterator[str]:
    x = gs.Tensor([1.0, 2.0, 3.0])
    with gs.GradientTape() as tape:
        tape.watch(x)
        y = square(x)
    yield f"x²        {y}"
    yield f"gradient  {tape.gradient(y, x)}"
    hessian = gs.hessian(lambda x: np.sum(square(x)))(np.ones(2))
    yield f"Hessian   {hessian.tolist()}"


if __name__ == "__main__":
    print(*report(), sep="\n")
