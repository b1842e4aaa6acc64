"""Minima by Newton's method whose steps conjugate gradients find.

Where the function bends down, conjugate gradients stop at the last direction in which
it doesn't; each step is halved until the value falls enough.
"""

from __future__ import annotations

from typing import Any

import gradsmith.numpy as gnp

from .calculus import calculus_of
from .search import HALVINGS, Newton, _norm, _tolerance

INNER = 200  # steps of conjugate gradients at most


class Descent:
    """A minimum of value(x, params); `equations.f` is its gradient."""

    def __init__(self, value: Any, tol: float | None, max_steps: int) -> None:
        self.value, self.tol, self.max_steps = value, tol, max_steps

    def __call__(self, x0: Any, params: Any, equations: Any) -> Any:
        calculus = calculus_of(x0, params)
        tol = _tolerance(self.tol, x0)

        def going(state: Any) -> Any:
            _, _, size, moved, k = state
            return (size > limit) & (moved > 0) & (k < self.max_steps)

        def step(state: Any) -> Any:
            x, g, size, _, k = state
            d = _direction(equations, x, g, size, params, calculus)
            new = self._lower(x, d, g, params, calculus)
            g = equations.f(new, params)
            return [new, g, _norm(g), _norm(new - x), k + 1]

        g = equations.f(x0, params)
        size = _norm(g)
        limit = tol * gnp.maximum(size, 1 + 0 * size)
        state = [x0, g, size, 1 + 0 * size, 0 * size]
        x, _, _, _, k = calculus.loop(going, step, state)
        # The value's rounding ends it long before the gradient's would.
        x, _, size, _ = Newton(0.0, 3).closest(x, params, equations)
        calculus.insist(
            size <= 1e3 * limit,
            "no minimum was found: after {steps:.0f} steps the gradient's norm is "
            "{residual:.1e}, more than {limit:.1e}. A gradient through it would be "
            "wrong.\n  what to do: start closer (x0), or give max_steps= or tol=",
            steps=k, residual=size, limit=1e3 * limit,
        )  # fmt: skip
        return x

    def _lower(self, x: Any, d: Any, g: Any, params: Any, calculus: Any) -> Any:
        """x + d / 2^k, with the least k for which the value falls enough."""
        start, slope = self.value(x, params), gnp.sum(g * d)

        def at(part: Any) -> Any:
            return [part, self.value(x + part * d, params)]

        def too_high(state: Any) -> Any:
            part, value = state
            enough = value <= start + 1e-4 * part * slope
            return ~enough & (part > 2.0**-HALVINGS)

        part, value = calculus.loop(
            too_high, lambda state: at(state[0] / 2), at(1 + 0 * slope)
        )
        return gnp.where(value <= start, x + part * d, x)


def _direction(
    equations: Any, x: Any, g: Any, size: Any, params: Any, calculus: Any
) -> Any:
    """About -H⁻¹ g, as far as H is positive."""
    at = [x, *params]
    exact = gnp.minimum(0.5 + 0 * size, gnp.sqrt(size)) * size  # closer when near

    def going(state: Any) -> Any:
        _, r, _, k, bends = state
        return (_norm(r) > exact) & (k < INNER) & (bends > 0)

    def step(state: Any) -> Any:
        d, r, p, k, _ = state
        q = equations.jacobian.push(p, at)
        rr, bend = gnp.sum(r * r), gnp.sum(p * q)
        ok = bend > 0
        a = gnp.where(ok, rr / gnp.where(ok, bend, 1), 0 * rr)
        first = gnp.where(ok, 0 * rr, gnp.where(k > 0, 0 * rr, 1 + 0 * rr))
        d = d + (a + first) * p
        new = r - a * q
        return [d, new, new + (gnp.sum(new * new) / rr) * p, k + 1, bend]

    zero = 0 * size
    return calculus.loop(going, step, [0 * g, -g, -g, zero, zero + 1])[0]
