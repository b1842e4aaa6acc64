"""Searches that Newton's method finishes: iteration, and a solver of the user's.

In the calls of every framework, in loops that compilers know. None is differentiated.
"""

from __future__ import annotations

from typing import Any

import gradsmith.numpy as gnp

from .curvature import is_minimum
from .newton import Newton
from .parts import compiled_of
from .sizes import norm, precision

FINISH = 20  # steps of Newton's method at most


class Iteration:
    """x = g(x), again and again, until it moves little; the rest is Newton's.

    A small step is no small distance where g hardly contracts.
    """

    def __init__(self, tol: float | None, max_steps: int) -> None:
        self.tol, self.max_steps = tol, max_steps

    def __call__(self, x0: Any, params: Any, equations: Any) -> Any:
        compiled, near = compiled_of(x0, params), precision(x0) ** 0.5

        def settled(state: Any) -> Any:
            _, off, way, _ = state
            return off <= near * way

        def going(state: Any) -> Any:
            _, off, _, k = state
            return ~settled(state) & (off < gnp.inf) & (k < self.max_steps)

        def step(state: Any) -> Any:
            x, _, way, k = state
            new = x - equations.f(x, params)  # that is x - g(x)
            return [new, norm(new - x), gnp.maximum(way, norm(new)), k + 1]

        way = norm(x0)
        off = norm(equations.f(x0, params))
        state = compiled.loop(going, step, [x0, off, way, 0 * way])
        x, off, way, k = state
        stays = settled(state) & (off < gnp.inf)
        found = Newton(self.tol, FINISH).find(
            gnp.where(stays, x, x0), params, equations, way
        )
        return compiled.insist(
            found.x,
            stays & found.holds,
            "no fixed point was found: after {steps:.0f} steps x still moves by "
            "{residual:.1e}. A gradient would be wrong.\n  what to do: give "
            "max_steps= or a larger tol=; if g is no contraction, use ops.root",
            steps=k, residual=off,
        )  # fmt: skip


class Given:
    """A solver of the user's: of f(x) = 0, or of a minimum of `value`."""

    def __init__(self, solver: Any, tol: float | None, value: Any = None) -> None:
        self.solver, self.tol, self.value = solver, tol, value

    def __call__(self, x0: Any, params: Any, equations: Any) -> Any:
        f = self.value or equations.f
        x = self.solver(lambda x: f(x, params), x0)
        tol = self.tol or precision(x0) ** 0.5
        way = gnp.maximum(norm(x0), norm(x))
        found = Newton(None, FINISH).find(x, params, equations, way)
        off = norm(found.x - x)
        x = compiled_of(x0, params).insist(
            found.x,
            found.holds & (off <= tol * way),
            "the given solver found no solution: the residual is {residual:.1e}, and "
            "Newton's method moves its result by {off:.1e}. A gradient would be "
            "wrong.\n  what to do: let it run longer, or give a larger tol=",
            residual=norm(equations.f(x, params)), off=off,
        )  # fmt: skip
        return is_minimum(x, params, equations) if self.value else x
