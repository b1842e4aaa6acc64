"""A charged particle in the field of two charges, one of which is to be placed.

The force is a gradient, and the place is found by descent along the gradient of where
the particle crosses the axis: derivatives of derivatives.
"""

from __future__ import annotations

from typing import Any

from benchmarks._peers import load
from benchmarks.gradbench.descent import argmin, argmin_in_jax
from benchmarks.gradbench.libraries import Library

SIZES = ({"dt": 1.0, "limit": 1}, {"dt": 0.1, "limit": 2})
VARIABLES = 1


def inputs(rng: Any, dt: float, limit: int) -> tuple[Any, ...]:
    return (rng.uniform(0, 0.1, size=()),)


def potential(np: Any, x: Any, w: Any) -> Any:
    from_first = np.sqrt((x[0] - 10) ** 2 + (x[1] - (10 - w)) ** 2)
    from_second = np.sqrt((x[0] - 10) ** 2 + x[1] ** 2)
    return 1 / from_first + 1 / from_second


def crossing(force: Any, dt: float, x: Any, v: Any, w: Any) -> Any:
    """The squared place at which the particle crosses the axis."""
    while True:
        new = x + dt * v
        if new[1] <= 0:
            break
        x, v = new, v - dt * force(x, w)
    place = x[0] - x[1] / v[1] * v[0]
    return place**2


def in_numpy(library: Library, dt: float, limit: int) -> Any:
    np = library.np
    x, v = np.array([0.0, 8.0]), np.array([0.75, 0.0])
    force = library.grad(lambda x, w: potential(np, x, w))
    miss = lambda w: crossing(force, dt, x, v, w)
    return lambda w: argmin(np, miss, library.grad(miss), w, limit)


def in_parts(library: Library, compile: Any, dt: float, limit: int) -> Any:
    """A step and the end are compiled, and the `if` on the place is Python's."""
    np = library.np
    start = np.array([0.0, 8.0]), np.array([0.75, 0.0])
    force = library.grad(lambda x, w: potential(np, x, w))
    step = compile(lambda x, v, w: (x + dt * v, v - dt * force(x, w)))
    end = compile(lambda x, v: (x[0] - x[1] / v[1] * v[0]) ** 2)

    def miss(w: Any) -> Any:
        x, v = start
        while True:
            new, faster = step(x, v, w)
            if new[1] <= 0:
                return end(x, v)
            x, v = new, faster

    return lambda w: argmin(np, miss, library.grad(miss), w, limit)


def in_torch(torch: Any, dt: float, limit: int) -> Any:
    grad = torch.autograd.grad
    x = torch.tensor([0.0, 8.0], dtype=torch.float64)
    v = torch.tensor([0.75, 0.0], dtype=torch.float64)

    def force(x: Any, w: Any) -> Any:
        x = x if x.requires_grad else x.detach().requires_grad_()
        p = potential(torch, x, w)
        (dx,) = grad(p, x, create_graph=w.requires_grad)
        return dx

    miss = lambda w: crossing(force, dt, x, v, w)

    def slope(w: Any) -> Any:
        w = w.detach().requires_grad_()
        return grad(miss(w), w)[0]

    return lambda w: argmin(torch, miss, slope, w.detach(), limit)


def in_jax(library: Library, dt: float, limit: int) -> Any:
    """Forward mode outside, as a loop of unknown length has no other."""
    jax, jnp = load("jax"), library.np
    lax = jax.lax
    force = jax.grad(lambda x, w: potential(jnp, x, w))

    def miss(w: Any) -> Any:
        start = jnp.array([0.0, 8.0]), jnp.array([0.75, 0.0])
        above = lambda xv: (xv[0] + dt * xv[1])[1] > 0
        step = lambda xv: (xv[0] + dt * xv[1], xv[1] - dt * force(xv[0], w))
        x, v = lax.while_loop(above, step, start)
        return (x[0] - x[1] / v[1] * v[0]) ** 2

    return lambda w: argmin_in_jax(lax, jnp, miss, jax.jacfwd(miss), w, limit)
