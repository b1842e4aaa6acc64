"""What is called in the other frameworks, eager and compiled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp

from ..aliasing.scenarios import square, square_by_rule, square_in_python
from ..modes import Mode, mode

Make = Callable[[Mode], Callable[[], Any]]
X = np.linspace(0.5, 1.5, 5)
MODES = ("torch", "torch compile", "jax", "jax jit", "tensorflow")
MODES += ("tensorflow function", "mlx")


def _gradient(make: Callable[[], Any]) -> Make:
    """Value and gradient, of a function that is compiled once."""

    def built(mode: Mode) -> Callable[[], Any]:
        run, x, dy = mode.compiled(make()), mode.array(X), mode.array(X)
        return lambda: mode.vjp_of(run, x)[1](dy)

    return built


def _forward(make: Callable[[], Any]) -> Make:
    def built(mode: Mode) -> Callable[[], Any]:
        run, x = mode.compiled(make()), mode.array(X)
        return lambda: run(x)

    return built


def _anew(mode: Mode) -> Callable[[], Any]:
    x, dy = mode.array(X), mode.array(X)
    return lambda: mode.vjp_of(square(), x)[1](dy)


def _static(mode: Mode) -> Callable[[], Any]:
    op = gs.custom_gradient(lambda x, k: (x * k, lambda dy: dy * k))
    x, dy, numbers = mode.array(X), mode.array(X), iter(range(10**9))

    def call() -> None:
        k = float(next(numbers) % 7)
        mode.vjp_of(lambda x: op(x, k), x)[1](dy)

    return call


def _broken(mode: Mode) -> Callable[[], Any]:
    op = gs.custom_gradient(lambda x: (x * x, lambda dy: dy[:2]))
    x, dy = mode.array(X), mode.array(X)

    def call() -> None:
        with suppress(Exception):
            mode.vjp_of(op, x)[1](dy)

    return call


def _tool(run: Callable[[Any, Any], Any]) -> Make:
    def built(mode: Mode) -> Callable[[], Any]:
        op, x = square(), mode.array(X)
        return lambda: run(op, x)

    return built


OPERATIONS: dict[str, Make] = {
    "custom_gradient": _gradient(square),
    "operation": _gradient(square_by_rule),
    "python_op": _gradient(square_in_python),
    "value alone": _forward(square),
    "ops.softmax": _gradient(lambda: lambda x: gs.ops.softmax(x)),
    "numpy.tanh": _gradient(lambda: lambda x: gnp.tanh(x) * x),
    "checkpoint": _gradient(lambda: gs.checkpoint(lambda x: x * x * x)),
}
EAGER: dict[str, Make] = {
    "custom_gradient, defined each time": _anew,
    "custom_gradient, static arguments": _static,
    "a broken contract": _broken,
    "check": _tool(gs.check),
    "memory": _tool(gs.memory),
    "find_nan": _tool(gs.find_nan),
}


def _entry(make: Make, name: str) -> Callable[[], Callable[[], Any]]:
    return lambda: make(mode(name))


ENTRIES = {
    (
        name.split()[0],
        " ".join([title, "in", *name.split()[1:]]) if " " in name else title,
    ): _entry(make, name)
    for name in MODES
    for title, make in {**OPERATIONS, **({} if " " in name else EAGER)}.items()
}
