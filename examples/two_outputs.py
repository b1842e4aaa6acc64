"""Two inputs and two outputs: z = xy + sin x and w = y², the gradient function last."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import gradsmith as gs


@gs.custom_gradient
def z_and_w(x, y):
    z = x * y + np.sin(x)
    w = y**2

    def grad(dz, dw):
        return dz * (y + np.cos(x)), dz * x + dw * 2 * y

    return z, w, grad


def report() -> Iterator[str]:
    x, y = gs.Tensor(2.0), gs.Tensor(3.0)
    with gs.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z, w = z_and_w(x, y=y)
    yield f"z = {z:.4f}, w = {w:.4f}"
    yield f"dz/dx, dz/dy  {[f'{d:.4f}' for d in tape.gradient(z, [x, y])]}"
    yield f"dw/dx, dw/dy  {[f'{d:.4f}' for d in tape.gradient(w, [x, y])]}"


if __name__ == "__main__":
    print(*report(), sep="\n")
