"""`root`, `fixed_point` and `argmin`, for trees of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradsmith.numpy as gnp

from ...core.compilers import not_rewritten
from ...core.errors import GradsmithError
from .._inputs import number
from .descent import Descent
from .newton import Newton
from .nonlinear import Equations, found
from .parts import calculus_of
from .search import Given, Iteration
from .vectors import Shape, on_vectors


@not_rewritten
def root(
    f: Callable[..., Any],
    x0: Any,
    *params: Any,
    tol: float | None = None,
    max_steps: int = 100,
    solver: Callable[..., Any] | None = None,
) -> Any:
    """The x with f(x, *params) = 0, by Newton's method from x0.

    x and the parameters are arrays or trees of them. `solver(f, x0)` replaces Newton's
    method, for vectors; gradients don't depend on how x was found.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> cube_root = lambda p: gs.ops.root(lambda x, p: x**3 - p, np.array(1.0), p)
    >>> float(cube_root(np.array(8.0)))
    2.0
    >>> float(gs.grad(cube_root)(np.array(8.0)))  # 1 / (3 x²)
    0.083333...

    Raises
    ------
    GradsmithError
        If no root is found: the search does not converge, or ∂f/∂x is singular
        where it ended; or f(x) doesn't have the structure of x.
    """
    tol, max_steps = number(tol), number(max_steps)
    shape, start, f, arrays = on_vectors(f, x0, params, "x0", _like("f(x)"))
    search = Given(solver, tol) if solver else Newton(tol, max_steps)
    return shape.result(found(start, arrays, Equations(f, search)))


@not_rewritten
def fixed_point(
    g: Callable[..., Any],
    x0: Any,
    *params: Any,
    tol: float | None = None,
    max_steps: int = 1000,
    solver: Callable[..., Any] | None = None,
) -> Any:
    """The x with x = g(x, *params), by iteration from x0.

    `solver(f, x0)` replaces the iteration, for vectors: it finds x with
    f(x) = x - g(x) = 0.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> float(gs.ops.fixed_point(lambda x: np.cos(x), np.array(1.0)))
    0.739085...

    Raises
    ------
    GradsmithError
        If the iteration does not converge, or g(x) doesn't have the structure of x.
    """
    tol, max_steps = number(tol), number(max_steps)
    shape, start, g, arrays = on_vectors(g, x0, params, "x0", _like("g(x)"))
    search = Given(solver, tol) if solver else Iteration(tol, max_steps)
    equations = Equations(lambda x, arrays: x - g(x, arrays), search)
    return shape.result(found(start, arrays, equations))


@not_rewritten
def argmin(
    f: Callable[..., Any],
    x0: Any,
    *params: Any,
    tol: float | None = None,
    max_steps: int = 200,
    solver: Callable[..., Any] | None = None,
) -> Any:
    """The x that minimizes f(x, *params), by Newton's method from x0.

    Its gradient is that of a root of ∂f/∂x: one solve with the matrix of second
    derivatives. `solver(f, x0)` replaces the search, for vectors.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> gs.ops.argmin(lambda x, p: np.sum((x - p) ** 2), np.zeros(2), np.ones(2))
    array([1., 1.])

    Raises
    ------
    GradsmithError
        If no minimum is found: the search does not converge, or the matrix of
        second derivatives is singular where it ended; or f(x) is not a number.
    """
    tol, max_steps = number(tol), number(max_steps)
    shape, start, f, arrays = on_vectors(f, x0, params, "x0", _number)

    def slope(x: Any, arrays: Any) -> Any:
        (y,), pull = calculus_of(x).vjp(lambda x: [f(x[0], arrays)], [x], nested=True)
        return pull([gnp.ones_like(y)])[0]

    search = Given(solver, tol, f) if solver else Descent(f, tol, max_steps)
    equations = Equations(slope, search, symmetric=True)
    return shape.result(found(start, arrays, equations))


def _like(name: str) -> Callable[[Shape, Any], Any]:
    return lambda shape, y: shape.vector(y, name)


def _number(shape: Shape, y: Any) -> Any:
    if tuple(gnp.shape(y)) != ():
        raise GradsmithError(
            "argmin: f(x) must be a number\n  expected: shape ()\n  got: shape "
            f"{tuple(y.shape)}\n  what to do: return its sum or mean, say"
        )
    return y
