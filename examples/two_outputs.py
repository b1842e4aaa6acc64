"""Two inputs, two outputs.

z = xy + sin x and w = y², with one gradient function for both.
"""

from __future__ import annotations

from collections.abc import Iterator

import gradsmith as gs
import gradsmith.numpy as gnp


@gs.custom_gradient
def z_and_w(x, y):
    z = x * y + gnp.sin(x)
    w = y**2

    def grad(dz, dw):
        return dz * (y + gnp.cos(x)), dz * x + dw * 2 * y

    return z, w, grad


@z_and_w.example
def _():
    return gs.spec("n"), gs.spec("n")


def report() -> Iterator[str]:
    x, y = gs.Tensor(2.0), gs.Tensor(3.0)
    with gs.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z, w = z_and_w(x, y=y)
    for name, value in (("z", z), ("w", w)):
        dx, dy = tape.gradient(value, [x, y])
        yield f"{name} = {value:.4f},  d{name}/dx = {dx:.4f},  d{name}/dy = {dy:.4f}"


if __name__ == "__main__":
    print(*report(), sep="\n")
