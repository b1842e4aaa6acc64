"""Minima by Newton's method whose steps conjugate gradients find.

Where the function bends down, conjugate gradients stop at the last direction in which
it doesn't; each step is halved until the value falls enough.
"""

from __future__ import annotations

from typing import Any

import gradsmith.numpy as gnp

from .curvature import is_minimum
from .newton import HALVINGS, Newton
from .parts import compiled_of
from .search import FINISH
from .sizes import largest, norm, tolerance

INNER = 200  # steps of conjugate gradients at most


class Descent:
    """A minimum of value(x, params); `equations.f` is its gradient."""

    def __init__(self, value: Any, tol: float | None, max_steps: int) -> None:
        self.value, self.tol, self.max_steps = value, tol, max_steps

    def __call__(self, x0: Any, params: Any, equations: Any) -> Any:
        compiled, tol = compiled_of(x0, params), tolerance(self.tol, x0)

        def going(state: Any) -> Any:
            _, _, moved, way, k = state
            return (moved > tol * way) & (k < self.max_steps)

        def step(state: Any) -> Any:
            x, g, _, way, k = state
            d = _direction(equations, x, g, norm(g) / first, params, compiled)
            new = self._lower(x, d, g, params, compiled)
            g = equations.f(new, params)
            return [new, g, norm(new - x), gnp.maximum(way, norm(new)), k + 1]

        g, way = equations.f(x0, params), norm(x0)
        first = gnp.where(norm(g) > 0, norm(g), 1 + 0 * way)
        state = [x0, g, gnp.inf + 0 * way, way, 0 * way]
        x, _, _, way, k = compiled.loop(going, step, state)
        # The value's rounding ends it long before the gradient's would.
        found = Newton(self.tol, FINISH).find(x, params, equations, way)
        end = compiled.insist(
            found.x,
            found.holds,
            "no minimum was found: after {steps:.0f} steps the gradient's norm is "
            "{residual:.1e}, and the next step is {off:.1e} of |x|. A gradient "
            "through it would be wrong.\n  what to do: start closer (x0), or give "
            "max_steps= or tol=",
            steps=k, residual=found.residual, off=found.off,
        )  # fmt: skip
        return self._no_higher(is_minimum(end, params, equations), x, x0, params)

    def _no_higher(self, x: Any, before: Any, x0: Any, params: Any) -> Any:
        """x; an error if Newton's method, which asks for no value, has climbed."""
        value, low, high = (self.value(x, params) for x in (x, before, x0))
        rounding = tolerance(None, x) * (gnp.abs(low) + gnp.abs(high))
        return compiled_of(x, params).insist(
            x,
            ~(value > low + rounding),
            "no minimum was found: the search came as low as {low:.6g}, where the "
            "gradient is not zero; where it is, the value is {value:.6g}\n  what to "
            "do: start closer (x0), or give max_steps=",
            low=low, value=value,
        )  # fmt: skip

    def _lower(self, x: Any, d: Any, g: Any, params: Any, compiled: Any) -> Any:
        """x + d / 2^k, with the least k for which the value falls enough."""
        start, slope = self.value(x, params), gnp.sum(g * d)

        def at(part: Any) -> Any:
            return [part, self.value(x + part * d, params)]

        def too_high(state: Any) -> Any:
            part, value = state
            enough = value <= start + 1e-4 * part * slope
            return ~enough & (part > 2.0**-HALVINGS)

        part, value = compiled.loop(
            too_high, lambda state: at(state[0] / 2), at(1 + 0 * slope)
        )
        return gnp.where(value <= start, x + part * d, x)


def _direction(
    equations: Any, x: Any, g: Any, rest: Any, params: Any, compiled: Any
) -> Any:
    """About -H⁻¹ g, as far as H is positive; closer when little of |g| is left."""
    at, unit = [x, *params], largest(g)
    b = -g / unit
    exact = gnp.minimum(0.5 + 0 * rest, gnp.sqrt(rest)) * norm(b)

    def going(state: Any) -> Any:
        _, r, _, k, bends = state
        return (norm(r) > exact) & (k < INNER) & (bends > 0)

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

    zero = 0 * rest
    return unit * compiled.loop(going, step, [0 * b, b, b, zero, zero + 1])[0]
