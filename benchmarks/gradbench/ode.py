"""Runge-Kutta steps of y_0' = x_0, y_i' = x_i y_(i-1), from zero to time two."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks._peers import load
from benchmarks.gradbench.libraries import Library, torch_value_and_grad

SIZES = ({"n": 1_000, "steps": 10}, {"n": 10_000, "steps": 100})
VARIABLES = 1


def inputs(rng: Any, n: int, steps: int) -> tuple[Any, ...]:
    return (rng.uniform(size=n),)


def step(slope: Any, h: float, y: Any) -> Any:
    k1 = slope(y)
    k2 = slope(y + h / 2 * k1)
    k3 = slope(y + h / 2 * k2)
    k4 = slope(y + h * k3)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def last(np: Any, one: Any, steps: int, x: Any) -> Any:
    slope = lambda y: x * np.concatenate((one, y[:-1]))
    y = np.zeros_like(x)
    for _ in range(steps):
        y = step(slope, 2 / steps, y)
    return y[-1]


def in_numpy(library: Library, n: int, steps: int) -> Any:
    one = library.np.ones(1)
    return library.value_and_grad(partial(last, library.np, one, steps))


def in_torch(torch: Any, n: int, steps: int) -> Any:
    one = torch.ones(1, dtype=torch.float64)
    return torch_value_and_grad(torch, partial(last, torch, one, steps))


def in_jax(library: Library, n: int, steps: int) -> Any:
    jnp, lax = library.np, load("jax.lax")

    def objective(x: Any) -> Any:
        slope = lambda y: x * jnp.concatenate((jnp.ones(1), y[:-1]))
        advance = lambda y, _: (step(slope, 2 / steps, y), None)
        return lax.scan(advance, jnp.zeros_like(x), length=steps)[0][-1]

    return library.value_and_grad(objective)
