"""A saddle point: the least, over x, of the greatest, over y, of f(x, y).

Both are found by gradient descent, the inner one within the function that the outer one
differentiates.
"""

from __future__ import annotations

from typing import Any

from benchmarks._peers import load
from benchmarks.gradbench.descent import argmin, argmin_in_jax, argmin_in_parts
from benchmarks.gradbench.libraries import Library

SIZES = ({"limit": 1}, {"limit": 5})
VARIABLES = 1
INNER = 500  # more steps than it takes


def inputs(rng: Any, limit: int) -> tuple[Any, ...]:
    return (rng.uniform(0.9, 1.1, size=2),)


def f(np: Any, x: Any, y: Any) -> Any:
    return np.sum(x * x) - np.sum(y * y)


def in_numpy(library: Library, limit: int) -> Any:
    np, grad = library.np, library.grad

    def saddle(start: Any) -> Any:
        def highest(x: Any) -> Any:
            cost = lambda y: -f(np, x, y)
            return argmin(np, cost, grad(cost), start, INNER)

        greatest = lambda x: f(np, x, highest(x))
        x = argmin(np, greatest, grad(greatest), start, limit)
        return np.concatenate((x, highest(x)))

    return saddle


def in_parts(library: Library, compile: Any, limit: int) -> Any:
    """The steps of the inner descent are compiled, and its `if`s are Python's."""
    np, grad, value_and_grad = library.np, library.grad, library.value_and_grad
    length = lambda v: np.sqrt(np.sum(v * v))

    def begin(y: Any, x: Any) -> Any:
        cost, slope = value_and_grad(lambda y: -f(np, x, y))(y)
        return cost, slope, length(slope)

    def attempt(y: Any, slope: Any, eta: Any, x: Any) -> Any:
        new = y - eta * slope
        return new, length(new - y), begin(new, x)

    first, then, value = (
        compile(begin),
        compile(attempt),
        compile(lambda x, y: f(np, x, y)),
    )

    def saddle(start: Any) -> Any:
        def highest(x: Any) -> Any:
            following = lambda y, slope, eta: then(y, slope, eta, x)
            return argmin_in_parts(np, lambda y: first(y, x), following, start, INNER)

        greatest = lambda x: value(x, highest(x))
        x = argmin(np, greatest, grad(greatest), start, limit)
        return np.concatenate((x, highest(x)))

    return saddle


def in_torch(torch: Any, limit: int) -> Any:
    def gradient(cost: Any, create_graph: bool) -> Any:
        def run(x: Any) -> Any:
            x = x if x.requires_grad else x.detach().requires_grad_()
            (dx,) = torch.autograd.grad(cost(x), x, create_graph=create_graph)
            return dx

        return run

    def saddle(start: Any) -> Any:
        start = start.detach()

        def highest(x: Any) -> Any:
            cost = lambda y: -f(torch, x, y)
            return argmin(torch, cost, gradient(cost, x.requires_grad), start, INNER)

        greatest = lambda x: f(torch, x, highest(x))
        slope = gradient(greatest, False)
        x = argmin(torch, greatest, slope, start, limit)
        return torch.cat((x, highest(x)))

    return saddle


def in_jax(library: Library, limit: int) -> Any:
    jax, jnp = load("jax"), library.np
    lax = jax.lax

    def saddle(start: Any) -> Any:
        def highest(x: Any) -> Any:
            cost = lambda y: -f(jnp, x, y)
            return argmin_in_jax(lax, jnp, cost, jax.grad(cost), start, INNER)

        greatest = lambda x: f(jnp, x, highest(x))
        slope = jax.jacfwd(greatest)
        x = argmin_in_jax(lax, jnp, greatest, slope, start, limit)
        return jnp.concatenate((x, highest(x)))

    return saddle
