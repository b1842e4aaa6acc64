"""How solutions are looked for: Newton's method, iteration, descent.

In the calls of every framework, in loops that compilers know. None is differentiated.
"""

from __future__ import annotations

from typing import Any

import gradsmith.numpy as gnp

from .calculus import calculus_of

HALVINGS = 30


class Newton:
    """Newton's method; a step that makes the residual larger is halved."""

    def __init__(self, tol: float | None, max_steps: int) -> None:
        self.tol, self.max_steps = tol, max_steps

    def __call__(self, x0: Any, params: Any, equations: Any) -> Any:
        calculus = calculus_of(x0, params)
        x, k, size, limit = self.closest(x0, params, equations)
        calculus.insist(
            size <= limit,
            "no root was found: after {steps:.0f} steps of Newton's method |f(x)| is "
            "{residual:.1e}, more than {limit:.1e}. A gradient would be wrong.\n"
            "  what to do: start closer (x0), or give max_steps= or a larger tol=",
            steps=k, residual=size, limit=limit,
        )  # fmt: skip
        return x

    def closest(self, x0: Any, params: Any, equations: Any) -> tuple[Any, ...]:
        """The last x, the steps it took, its residual, and how small that should be."""
        calculus = calculus_of(x0, params)

        def residual(x: Any) -> Any:
            return equations.f(x, params)

        def going(state: Any) -> Any:
            _, _, size, before, k = state
            return (size > limit) & (size < before) & (k < self.max_steps)

        def step(state: Any) -> Any:
            x, r, size, _, k = state
            d = equations.step(r, x, params)
            x, r, new = _shortened(x, d, r, size, residual, calculus)
            return [x, r, new, size, k + 1]

        r = residual(x0)
        size = _norm(r)
        limit = _tolerance(self.tol, x0) * gnp.maximum(size, 1 + 0 * size)
        state = [x0, r, size, 2 * size, 0 * size]
        x, _, size, _, k = calculus.loop(going, step, state)
        return x, k, size, limit


def _shortened(x: Any, d: Any, r: Any, size: Any, residual: Any, calculus: Any) -> Any:
    """x - d / 2^k, with the least k that makes the residual smaller."""

    def at(part: Any) -> Any:
        new = x - part * d
        r = residual(new)
        return [new, r, _norm(r), part]

    def too_large(state: Any) -> Any:
        _, _, new, part = state
        return ~(new <= (1 - part / 4) * size) & (part > 2.0**-HALVINGS)

    first = at(1 + 0 * size)
    return calculus.loop(too_large, lambda state: at(state[3] / 2), first)[:3]


class Iteration:
    """x = g(x), again and again."""

    def __init__(self, tol: float | None, max_steps: int) -> None:
        self.tol, self.max_steps = tol, max_steps

    def __call__(self, x0: Any, params: Any, equations: Any) -> Any:
        calculus = calculus_of(x0, params)
        tol = _tolerance(self.tol, x0)

        def going(state: Any) -> Any:
            x, off, k = state
            return ~(off <= tol * (1 + _norm(x))) & (k < self.max_steps)

        def step(state: Any) -> Any:
            x, _, k = state
            r = equations.f(x, params)  # x - g(x)
            return [x - r, _norm(r), k + 1]

        zero = 0 * _norm(x0)
        x, off, k = calculus.loop(going, step, [x0, zero + gnp.inf, zero])
        calculus.insist(
            off <= tol * (1 + _norm(x)),
            "no fixed point was found: after {steps:.0f} steps x still moves by "
            "{residual:.1e}. A gradient would be wrong.\n  what to do: give "
            "max_steps= or a larger tol=; if g is no contraction, use ops.root",
            steps=k, residual=off,
        )  # fmt: skip
        return x


class Given:
    """A solver of the user's: of f(x) = 0, or of a minimum of `value`."""

    def __init__(self, solver: Any, tol: float | None, value: Any = None) -> None:
        self.solver, self.tol, self.value = solver, tol, value

    def __call__(self, x0: Any, params: Any, equations: Any) -> Any:
        f = self.value or equations.f
        x = self.solver(lambda x: f(x, params), x0)
        size, first = (_norm(equations.f(x, params)) for x in (x, x0))
        tol = self.tol or float(gnp.finfo(x0.dtype).eps) ** 0.5
        limit = tol * gnp.maximum(first, 1 + 0 * first)
        calculus_of(x0, params).insist(
            size <= limit,
            "the solver given found no solution: the residual is {residual:.1e}, more "
            "than {limit:.1e}. A gradient would be wrong.\n  what to do: let it go on "
            "for longer, or give a larger tol=",
            residual=size, limit=limit,
        )  # fmt: skip
        return x


def _tolerance(tol: float | None, x: Any) -> float:
    """What is reached in any case: some hundred units in the last place."""
    return tol if tol is not None else 1e3 * float(gnp.finfo(x.dtype).eps)


def _norm(r: Any) -> Any:
    return gnp.sqrt(gnp.sum(r * r))
