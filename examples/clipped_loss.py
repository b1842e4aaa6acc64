"""A loss, (y_true - exp(log(clip(y_pred, 1e-6, 1))))² averaged, with its own gradient.

exp(log(.)) cancels and the clip lets nothing through outside its bounds, so the
gradient is written in one line. The labels have none.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import gradsmith as gs


def plain_loss(y_true, y_pred):
    p = np.exp(np.log(np.clip(y_pred, 1e-6, 1)))
    return np.mean((y_true - p) ** 2)


def loss_gradient(dy, y, y_true, y_pred):
    inside = (y_pred >= 1e-6) & (y_pred <= 1)
    p = np.clip(y_pred, 1e-6, 1)
    return None, dy * inside * 2 * (p - y_true) / y_pred.size


loss = gs.with_gradient(plain_loss, loss_gradient)


@loss.example
def _():
    # Labels are small integers: they have no gradient, and float32 stays float32
    return np.array([1, 0, 1, 0], np.int8), np.array([0.9, 0.2, -0.3, 1.5])


def report() -> Iterator[str]:
    y_true = gs.Tensor([1.0, 0.0, 1.0, 0.0])
    y_pred = gs.Tensor([0.9, 0.2, -0.3, 1.5])
    with gs.GradientTape() as tape:
        tape.watch([y_true, y_pred])
        value = loss(y_true, y_pred)
    for_labels, for_predictions = tape.gradient(value, [y_true, y_pred])
    yield f"loss                      {value:.4f}"
    yield f"gradient for predictions  {for_predictions}"
    yield f"gradient for labels       {for_labels}"
    yield f"why? {tape.explain(value, y_true)}".replace("\n", " ")


if __name__ == "__main__":
    print(*report(), sep="\n")
