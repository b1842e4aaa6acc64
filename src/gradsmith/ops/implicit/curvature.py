"""Whether a function bends up, where its gradient is zero.

Conjugate gradients from a vector that lies along no axis meet every curvature of the
matrix: the sign of pᵀ H p along their directions tells a minimum from the rest.
"""

from __future__ import annotations

from typing import Any

import gradsmith.numpy as gnp

from .parts import compiled_of
from .sizes import norm, precision, probe

DIRECTIONS = 200  # at most


def is_minimum(x: Any, params: Any, equations: Any) -> Any:
    """x; an error if the function bends down there."""
    if x.shape[0] == 0:
        return x
    compiled = compiled_of(x, params)
    least, most = _curvatures(x, params, equations, compiled)
    return compiled.insist(
        x,
        least >= -(precision(x) ** 0.5) * most,
        "no minimum was found: where the gradient is zero the curvature is negative, "
        "{least:.1e}: a maximum or a saddle\n  what to do: start elsewhere (x0), or "
        "is it unbounded below?",
        least=least,
    )


def _curvatures(x: Any, params: Any, equations: Any, compiled: Any) -> Any:
    """The least of pᵀ H p / pᵀ p over all directions p, and the largest of |H p|."""
    count, at = min(DIRECTIONS, x.shape[0]), [x, *params]

    def going(state: Any) -> Any:
        r, _, least, _, k = state
        left = norm(r) > precision(x) * start
        return left & (least > 0) & (k < count)

    def step(state: Any) -> Any:
        r, p, least, most, k = state
        q = equations.jacobian.push(p, at)
        unit = norm(p)
        bend = gnp.sum((p / unit) * (q / unit))
        some = gnp.where(bend > 0, bend, 1 + 0 * bend)
        new = r - (norm(r) / unit) ** 2 / some * q
        p = new + (norm(new) / norm(r)) ** 2 * p
        least, most = gnp.minimum(least, bend), gnp.maximum(most, norm(q) / unit)
        return [new, p, least, most, k + 1]

    b = probe(x) + 0 * x
    start, zero = norm(b), 0 * norm(b)
    state = [b, b, gnp.inf + zero, zero, zero]
    return compiled.loop(going, step, state)[2:4]
