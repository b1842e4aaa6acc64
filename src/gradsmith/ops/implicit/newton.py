"""Newton's method, and when it has found a root.

The step d = J⁻¹ f(x) is about the distance to the root, in whatever units f and x are.
There are three ways to have found one:

    |d| is small beside |x|
    |d| is small beside the way from x0, and much smaller than the step before: x is
        as good as zero, and Newton's method has come to where it doubles the digits
    no part of d makes |f| smaller, though |f| falls that way: all is rounding, if d
        is small beside the way, or f beside J x
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gradsmith.numpy as gnp

from .parts import compiled_of
from .sizes import norm, precision, tolerance

HALVINGS = 30


class Found(NamedTuple):
    """Where Newton's method has come to, in how many steps, and if it is a root."""

    x: Any
    holds: Any
    steps: Any
    residual: Any
    off: Any  # the length of the next step, beside |x|


class Newton:
    """Newton's method; a step that makes the residual larger is halved."""

    def __init__(self, tol: float | None, max_steps: int) -> None:
        self.tol, self.max_steps = tol, max_steps

    def __call__(self, x0: Any, params: Any, equations: Any) -> Any:
        found = self.find(x0, params, equations, norm(x0))
        return compiled_of(x0, params).insist(
            found.x,
            found.holds,
            "no root was found: after {steps:.0f} steps of Newton's method |f(x)| is "
            "{residual:.1e}, and the next step is {off:.1e} of |x|. A gradient would "
            "be wrong.\n  what to do: start closer (x0), or give max_steps= or a "
            "larger tol=",
            steps=found.steps, residual=found.residual, off=found.off,
        )  # fmt: skip

    def find(self, x0: Any, params: Any, equations: Any, way: Any) -> Found:
        """The root next to x0; `way` is how large the unknowns have been."""
        compiled, tol = compiled_of(x0, params), tolerance(self.tol, x0)

        def residual(x: Any) -> Any:
            return equations.f(x, params)

        def going(state: Any) -> Any:
            *_, stuck, k = state
            return ~_close(state, tol) & (stuck == 0) & (k < self.max_steps)

        def step(state: Any) -> Any:
            x, r, size, d, _, way, _, k = state
            new, r_new, less, falls = _shortened(x, d, r, size, residual, compiled)
            x, r = gnp.where(falls, new, x), gnp.where(falls, r_new, r)
            size = gnp.where(falls, less, size)
            stuck = gnp.where(falls, 0 * k, 1 + 0 * k)
            before, d = norm(d), equations.step(r, x, params)
            return [x, r, size, d, before, gnp.maximum(way, norm(x)), stuck, k + 1]

        r = residual(x0)
        size, d = norm(r), equations.step(r, x0, params)
        zero = 0 * size
        state = [x0, r, size, d, zero, gnp.maximum(way, norm(x0)), zero, zero]
        state = compiled.loop(going, step, state)
        return _found(state, tol, lambda x: equations.jacobian.push(x, [x, *params]))


def _close(state: Any, tol: float) -> Any:
    """If the next step is small beside x, or x as good as zero."""
    x, _, _, d, before, way, _, _ = state
    last = norm(d)
    doubling = (last <= tol * way) & (last <= before / 100)
    return (last <= tol * norm(x)) | doubling


def _found(state: Any, tol: float, push: Any) -> Found:
    x, _, size, d, _, way, stuck, k = state
    near = norm(d) <= precision(x) ** 0.5 * way
    rounding = near | (size <= tol * norm(push(x)))
    holds = _close(state, tol) | ((stuck > 0) & rounding)
    # All digits, where the search ends with half of them.
    x = gnp.where(stuck > 0, x, x - d)
    return Found(x, holds, k, size, norm(d) / gnp.where(norm(x) > 0, norm(x), 1))


def _shortened(x: Any, d: Any, r: Any, size: Any, residual: Any, compiled: Any) -> Any:
    """x - d / 2^k, with the least k that makes the residual smaller; if one does."""

    def at(part: Any) -> Any:
        new = x - part * d
        r = residual(new)
        return [new, r, norm(r), part]

    def too_large(state: Any) -> Any:
        _, _, new, part = state
        return ~(new <= (1 - part / 4) * size) & (part > 2.0**-HALVINGS)

    first = at(1 + 0 * size)
    new, r, less, _ = compiled.loop(too_large, lambda state: at(state[3] / 2), first)
    return new, r, less, less < size
