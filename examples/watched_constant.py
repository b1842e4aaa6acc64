"""A constant, watched or not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import gradsmith as gs
from examples.square import square


def loss_and_gradient(values):
    x = gs.constant(values)
    with gs.GradientTape() as tape:
        tape.watch(x)
        loss = np.sum(square(x))
    return loss, tape.gradient(loss, x)


def report() -> Iterator[str]:
    loss, gradient = loss_and_gradient([1.0, 2.0, 3.0])
    yield f"loss      {loss}"
    yield f"gradient  {gradient}"

    x = gs.constant([1.0, 2.0, 3.0])
    with gs.GradientTape() as tape:
        loss = np.sum(square(x))
    yield f"unwatched {tape.gradient(loss, x)}"
    yield f"why?      {tape.explain(loss, x)}"


if __name__ == "__main__":
    print(*report(), sep="\n")
