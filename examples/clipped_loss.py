"""A loss of clipped predictions.

The loss is the mean of (y_true - exp(log(clip(y_pred, 1e-6, 1))))². exp(log(.)) cancels
and the clip lets nothing through outside its bounds, so the gradient is written in one
line. The labels have none, and may be integers.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp


def plain_loss(y_true, y_pred):
    p = gnp.exp(gnp.log(gnp.clip(y_pred, 1e-6, 1)))
    return gnp.mean((gnp.astype(y_true, p.dtype) - p) ** 2)


def loss_gradient(dy, y, y_true, y_pred):
    inside = (y_pred >= 1e-6) & (y_pred <= 1)
    error = y_pred - gnp.astype(y_true, y_pred.dtype)
    return None, dy * gnp.where(inside, 2 * error, 0) / gnp.size(y_pred)


loss = gs.with_gradient(plain_loss, loss_gradient)


@loss.example
def _():
    return np.array([1, 0, 1, 0]), np.array([0.9, 0.2, -0.3, 1.5])


def report() -> Iterator[str]:
    y_true = gs.Tensor([1.0, 0.0, 1.0, 0.0])
    y_pred = gs.Tensor([0.9, 0.2, -0.3, 1.5])
    with gs.GradientTape() as tape:
        tape.watch([y_true, y_pred])
        value = loss(y_true, y_pred)
    for_labels, for_predictions = tape.gradient(value, [y_true, y_pred])
    yield f"loss             {value:.4f}"
    yield f"for predictions  {for_predictions}"
    yield f"for labels       {for_labels}"
    yield f"why?             {tape.explain(value, y_true).splitlines()[-1].strip()}"


if __name__ == "__main__":
    print(*report(), sep="\n")
