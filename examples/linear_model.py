"""A linear model, trained by Adam."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp

TRUE_WEIGHTS = np.array([2.0, -3.0])
TRUE_BIAS = 0.5


@gs.custom_gradient
def mean_squared_error(y_true, y_pred):
    error = y_pred - gnp.astype(y_true, y_pred.dtype)  # labels may be integers

    def grad(dy):
        return None, dy * 2 * error / gnp.size(error)

    return gnp.mean(error**2), grad


@mean_squared_error.example
def _():
    return gs.spec("n", "int64"), gs.spec("n")


def train(steps: int = 300, seed: int = 0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(200, 2))
    y_true = x @ TRUE_WEIGHTS + TRUE_BIAS + 0.01 * rng.normal(size=200)
    weights = gs.Variable(np.zeros(2), name="weights")
    bias = gs.Variable(0.0, name="bias")
    optimizer = gs.optimizers.Adam(learning_rate=0.1)
    losses = []
    for _ in range(steps):
        with gs.GradientTape() as tape:
            loss = mean_squared_error(y_true, x @ weights + bias)
        gradients = tape.gradient(loss, [weights, bias])
        optimizer.apply_gradients(zip(gradients, [weights, bias], strict=True))
        losses.append(loss.numpy())
    return weights.numpy(), bias.numpy(), losses


def report() -> Iterator[str]:
    weights, bias, losses = train()
    yield f"loss     {losses[0]:.4f} -> {losses[-1]:.6f} in {len(losses)} steps"
    yield f"weights  {np.round(weights, 3)}  (true {TRUE_WEIGHTS})"
    yield f"bias     {bias:.3f}  (true {TRUE_BIAS})"


if __name__ == "__main__":
    print(*report(), sep="\n")
