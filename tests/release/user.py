"""A small file of a user: it runs, and pyright finds nothing in it but what is wrong.

`make dist` runs it with the wheel in an environment that has NumPy alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

import gradsmith as gs

Array = np.ndarray


@gs.custom_gradient
def softplus(x: Array, scale: float = 1.0) -> tuple[Array, Callable[[Array], Array]]:
    e = np.exp(-np.abs(x))
    y = scale * (np.maximum(x, 0) + np.log1p(e))

    def grad(dy: Array) -> Array:
        return dy * scale * np.where(x > 0, 1, e) / (1 + e)

    return y, grad


def gradients() -> None:
    x = np.array([-1000.0, 0.0, 1000.0])
    expected = [0, 0.5, 1]
    total = gs.grad(lambda x: np.sum(softplus(x)))
    np.testing.assert_allclose(total(x), expected, atol=1e-15)
    np.testing.assert_allclose(gs.compile(total)(x), expected, atol=1e-15)
    tangent = gs.jvp(softplus, (x,), (np.ones(3),))[1]
    np.testing.assert_allclose(tangent, expected, atol=1e-15)
    with gs.GradientTape() as tape:
        variable = gs.Variable(x)
        y = np.sum(gs.ops.logsumexp(variable))
    np.testing.assert_allclose(tape.gradient(y, variable), [0, 0, 1], atol=1e-15)
    assert gs.check(softplus, np.array([-0.5, 0.25, 2.0]))


def nothing_else_is_loaded() -> None:
    others = {"scipy", "torch", "jax", "tensorflow", "keras", "mlx", "click", "pytest"}
    assert not others & set(sys.modules)


if __name__ == "__main__":
    gradients()
    nothing_else_is_loaded()
    softplus(np.ones(2), scale=2.0)  # right
    softplus(np.ones(2), scaling=2.0) if "pyright" in sys.argv else None  # wrong
