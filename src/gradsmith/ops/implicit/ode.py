"""Ordinary differential equations, whose gradients are solved for as well.

For dy/dt = f(t, y, p), the cotangent a of y obeys an equation of its own, backwards
from t1 to t0, and gathers that of the parameters on its way (Pontryagin's adjoint):

    da/dt = -(∂f/∂y)ᵀ a        dg/dt = -(∂f/∂p)ᵀ a

The tangent v of y obeys dv/dt = ∂f/∂y v + ∂f/∂p dp, forwards. Both are solved by the
operation itself, hence of every order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradsmith.numpy as gnp

from ...operations.define import operation
from .parts import calculus_of
from .smooth import chosen, filled, smooth
from .vectors import Shape, is_float


class Flow:
    """dy/dt = f(t, y, params) for vectors y, and the solver that follows it."""

    def __init__(self, f: Callable[..., Any], solver: Callable[..., Any]) -> None:
        self.f, self.solver = f, solver


@operation
def advance(y: Any, t0: Any, t1: Any, params: Any, flow: Flow) -> Any:
    """y at t1, from that at t0."""
    return flow.solver(lambda t, y: flow.f(t, y, params), y, t0, t1)


@advance.vjp
def _(dy: Any, end: Any, y: Any, t0: Any, t1: Any, params: Any, flow: Flow) -> Any:
    calculus = calculus_of(end)
    whole = [end, dy, *map(gnp.zeros_like, filter(is_float, params))]
    shape = Shape(whole, "the adjoint's state", end.dtype)

    def adjoint(t: Any, state: Any, params: Any) -> Any:
        y, a, *_ = shape.result(state)
        f = lambda yp: [flow.f(t, yp[0], yp[1:])]
        slope, pull = calculus.vjp(*smooth(f, [y, *params]), nested=True)
        return shape.vector([slope[0], *[-dx for dx in pull([a])]])

    back = Flow(adjoint, flow.solver)
    found = advance(shape.vector(whole), t1, t0, params, back)
    _, a, *dsmooth = shape.result(found)
    dparams = filled(params, dsmooth, None)
    dt1 = gnp.sum(dy * flow.f(t1, end, params))
    dt0 = -gnp.sum(a * flow.f(t0, y, params))
    given = {"y": a, "t0": dt0, "t1": dt1}
    return {**given, "params": dparams} if params else given


@advance.jvp
def _(d: Any, end: Any, y: Any, t0: Any, t1: Any, params: Any, flow: Flow) -> Any:
    dy, dt0, dt1, *rest = d
    calculus, n = calculus_of(end), len(params)
    dy = dy - dt0 * flow.f(t0, y, params)
    both = Shape([y, dy], "the tangent's state")

    def tangent(t: Any, state: Any, arrays: Any) -> Any:
        params, moves = arrays[:n], arrays[n:]
        y, v = both.arrays(state)
        f = lambda yp: [flow.f(t, yp[0], yp[1:])]
        ys, dys = calculus.jvp(*smooth(f, [y, *params]), [v, *moves], nested=True)
        return both.vector([*ys, *dys])

    moves = chosen(params, rest[0]) if rest else []
    moved = Flow(tangent, flow.solver)
    found = advance(both.vector([y, dy]), t0, t1, [*params, *moves], moved)
    return both.arrays(found)[1] + dt1 * flow.f(t1, end, params)
