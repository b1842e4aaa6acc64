"""A cubic layer, trained.

The operation is part of a gs.Module, whose weight is trained through it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import gradsmith as gs


@gs.operation
def cube(x):
    return x**3


@cube.vjp
def _(dy, y, x):
    return 3 * x**2 * dy


@cube.example
def _():
    return gs.spec("n")


class CubicLayer(gs.Module):
    """y = (x w)³ with a trainable w."""

    def __init__(self, initial: float) -> None:
        self.w = gs.Variable(initial, name="w")

    def __call__(self, x):
        return cube(x * self.w)


def fit(layer: CubicLayer, x, y_true, steps: int = 100) -> list[float]:
    optimizer = gs.optimizers.SGD(learning_rate=0.01)
    losses = []
    for _ in range(steps):
        with gs.GradientTape() as tape:
            loss = np.mean((layer(x) - y_true) ** 2)
        gradients = tape.gradient(loss, layer.trainable_variables)
        optimizer.apply_gradients(
            zip(gradients, layer.trainable_variables, strict=True)
        )
        losses.append(loss.item())
    return losses


def report() -> Iterator[str]:
    x = np.linspace(-1, 1, 50)
    layer = CubicLayer(initial=0.8)
    losses = fit(layer, x, (1.5 * x) ** 3)
    yield f"loss  {losses[0]:.4f} -> {losses[-1]:.2e}"
    yield f"w     {layer.w.numpy():.4f}  (true 1.5)"


if __name__ == "__main__":
    print(*report(), sep="\n")
