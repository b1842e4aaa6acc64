"""Operations with their own gradient, which programs call by these names."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp


@gs.operation
def cube(x: Any) -> Any:
    return x * x * x


@cube.vjp
def _cube_vjp(dy: Any, y: Any, x: Any) -> Any:
    return 3 * x * x * dy


@gs.custom_gradient
def soft(x: Any, beta: float = 1.0) -> Any:
    y = gnp.log1p(gnp.exp(-gnp.abs(beta * x))) / beta + gnp.maximum(x, 0.0)
    return y, lambda dy: dy / (1 + gnp.exp(-beta * x))


@gs.operation
def scaled(x: Any, y: Any) -> Any:
    return x * gnp.sin(y)


@scaled.vjp
def _scaled_vjp(dz: Any, z: Any, x: Any, y: Any) -> Any:
    dx, dy = dz * gnp.sin(y), dz * x * gnp.cos(y)
    return gs.unbroadcast(dx, gnp.shape(x)), gs.unbroadcast(dy, gnp.shape(y))


@gs.custom_gradient
def pair(x: Any) -> Any:
    def grad(dsin: Any, dsquare: Any) -> Any:
        return dsin * gnp.cos(x) + dsquare * 2 * x

    return gnp.sin(x), x * x, grad


@gs.custom_gradient
def tree(xs: Any) -> Any:
    a, (b,) = xs["a"], xs["b"]
    return a * b, lambda dy: {"a": dy * b, "b": [dy * a]}


@gs.operation
def pushed(x: Any) -> Any:
    return gnp.tanh(x)


@pushed.jvp
def _pushed_jvp(dx: Any, y: Any, x: Any) -> Any:
    return dx * (1 - y * y)


@gs.python_op
def solver(x: Any) -> Any:
    return np.arctan(x)


@solver.vjp
def _solver_vjp(dy: Any, y: Any, x: Any) -> Any:
    return dy / (1 + x * x)


OPERATIONS = {
    "cube": cube,
    "soft": soft,
    "scaled": scaled,
    "pair": pair,
    "tree": tree,
    "pushed": pushed,
    "solver": solver,
}
