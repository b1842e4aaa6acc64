"""`odeint`, for trees of arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gradsmith.numpy as gnp

from ...core import trees
from ...core.arrays import common_framework, framework_of
from ...core.compilers import not_rewritten
from ...core.errors import GradsmithError
from .._inputs import number
from .discrete import stepped
from .ode import Flow, advance
from .parts import compiled_of
from .runge_kutta import Adaptive, Steps
from .vectors import is_float, on_vectors, working


@not_rewritten
def odeint(
    f: Callable[..., Any],
    y0: Any,
    t: Any,
    *params: Any,
    method: str = "dopri5",
    steps: int = 10,
    rtol: float | None = None,
    atol: float | None = None,
    max_steps: int = 10_000,
    gradient: str = "adjoint",
    snapshots: int | None = None,
) -> Any:
    """Solve dy/dt = f(t, y, *params) from y0 at t[0]; y at every time of t.

    "dopri5" chooses its steps by rtol and atol; "rk4" takes `steps` equal ones between
    two times. The gradients with respect to y0, t and params solve the adjoint equation
    backward in time: no step is stored, and they are as accurate as the tolerances.
    With `gradient="discrete"` they are those of the computed steps, to rounding:
    between two times at most `snapshots` states are stored, and the others are
    recomputed.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> def decayed(rate):
    ...     f, y0, t = lambda t, y, rate: -rate * y, np.array(1.0), np.array([0.0, 1.0])
    ...     return gs.ops.odeint(f, y0, t, rate)[-1]
    >>> print(f"{decayed(np.array(2.0)):.5f} {gs.grad(decayed)(np.array(2.0)):.5f}")
    0.13534 -0.13534

    Raises
    ------
    GradsmithError
        If method or gradient is not known, t is not a vector of times, snapshots are
        given for the adjoint equation, or compiled code would have to choose steps by
        values (dopri5 with discrete gradients).
    """
    t = _times(t, y0)
    if gnp.ndim(t) != 1 or t.shape[0] < 1:
        raise GradsmithError(
            "odeint: t must be the times of the results, starting with that of y0\n"
            f"  expected: shape (n,) with n >= 1\n  got: shape {tuple(gnp.shape(t))}"
        )
    shape, y, slope, arrays = on_vectors(
        lambda y, t, *params: f(t, y, *params), y0, (t[0, ...], *params), "y0",
        lambda shape, dy: shape.vector(dy, "f(t, y)"),
    )  # fmt: skip
    common_framework(filter(framework_of, [y, t, *arrays]), "odeint")
    rtol, atol = number(rtol), number(atol)
    solver = _solver(method, number(steps), rtol, atol, number(max_steps), y)
    flow = Flow(lambda t, y, arrays: slope(y, [t, *arrays]), solver)
    intervals = t.shape[0] - 1
    move = _mover(gradient, number(snapshots), intervals)
    first = shape.result(y)
    later = NotImplemented
    if intervals > 1 and gradient == "adjoint":

        def step(y: Any, start: Any, stop: Any) -> tuple[Any, Any]:
            y = move(y, start, stop, arrays[1:], flow)
            return y, trees.leaves(shape.result(y))

        xs = [t[:-1, ...], t[1:, ...]]
        later = compiled_of(y, t, arrays).scan(step, y, xs, arrays)
    if later is not NotImplemented:
        pairs = zip(trees.leaves(first), later, strict=True)
        parts = [gnp.concatenate([a[None, ...], b]) for a, b in pairs]
        return trees.unflatten(first, parts)
    ys = [y]
    for i in range(intervals):
        ys.append(move(ys[-1], t[i, ...], t[i + 1, ...], arrays[1:], flow))
    return trees.map(lambda *parts: gnp.stack(parts), *map(shape.result, ys))


def _times(t: Any, y0: Any) -> Any:
    """The times in the numbers of y0: one equation has one kind of them."""
    found = [y for y in trees.leaves(y0) if framework_of(y) is not None]
    if not found:
        return t
    dtype = working(*filter(is_float, found))
    if framework_of(t) is None:
        return gnp.asarray(t, dtype=dtype, like=found[0])
    return t if t.dtype == dtype else gnp.astype(t, dtype)


def _mover(gradient: str, snapshots: int | None, intervals: int) -> Callable[..., Any]:
    """What leads from one time to the next, differentiated as was asked for."""
    if gradient == "discrete":
        return partial(stepped, snapshots=snapshots, apart=intervals > 1)
    if gradient != "adjoint":
        raise GradsmithError(
            f"odeint: gradient={gradient!r} is not known\n"
            "  expected: 'adjoint' or 'discrete'"
        )
    if snapshots is not None:
        raise GradsmithError(
            "odeint: snapshots= are states that gradient='discrete' stores; the "
            "adjoint equation needs none"
        )
    return advance


def _solver(
    method: str, steps: int, rtol: Any, atol: Any, max_steps: int, y: Any
) -> Any:
    if method == "rk4":
        return Steps(steps)
    if method == "dopri5":
        close = float(gnp.finfo(y.dtype).eps) ** 0.5
        return Adaptive(rtol or close, atol or close, max_steps)
    raise GradsmithError(
        f"odeint: method={method!r} is not known\n  expected: 'dopri5' or 'rk4'"
    )
