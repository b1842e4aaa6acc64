"""`linear_solve`, `root`, `fixed_point` and `argmin`, for trees of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradsmith.numpy as gnp

from .. import _tree
from .._arrays import framework_of
from .._errors import GradsmithError
from .calculus import calculus_of
from .descent import Descent
from .linear import Map
from .nonlinear import Equations, found
from .ode import Flow, advance
from .runge_kutta import Adaptive, Steps
from .search import Iteration, Newton
from .vectors import Shape, split


def _door(fn: Any) -> Any:
    fn.autograph_info__ = {}  # else TensorFlow's AutoGraph would rewrite it
    return fn


@_door
def linear_solve(
    a: Any,
    b: Any,
    *params: Any,
    symmetric: bool = False,
    solver: Callable[..., Any] | None = None,
    tol: float | None = None,
    max_steps: int = 10_000,
) -> Any:
    """Solve a x = b; its gradient is a solve with the transposed matrix.

    `a` is a square matrix (or a stack of them), a sparse matrix of SciPy, or a function:
    `a(x, *params)` is linear in x, a tree of arrays as b is, and differentiated by
    `params` too. Then the matrix is never made, but for 512 unknowns or fewer;
    `symmetric` says that it is, and positive definite. `solver(matvec, b)` finds the
    solution in place of ours, for vectors.

    >>> import numpy as np, gradsmith as gs
    >>> def laplace(x, stiffness):
    ...     return 2 * stiffness * x - np.roll(x, 1) - np.roll(x, -1)
    >>> x = linear_solve(laplace, np.array([1.0, 0.0, 0.0]), np.array(2.0))
    >>> laplace(x, 2.0)
    array([1., 0., 0.])
    """
    if not callable(a):
        if params:
            raise GradsmithError(
                "linear_solve: parameters are for a function of them; "
                f"the matrix given is a {type(a).__name__}"
            )
        return _solve_matrix(a, b)
    shape = Shape(b, "b")
    arrays, rebuild = split(params)

    def push(v: Any, arrays: Any) -> Any:
        return shape.vector(a(shape.arrays(v), *rebuild(arrays)), "a(x)")

    vector = shape.vector(b)
    push, arrays = calculus_of(b, arrays).converted(push, vector, arrays)
    how = {"symmetric": symmetric, "solver": solver}
    matrix = Map(push, tol=tol, max_steps=max_steps, **how)  # type: ignore[arg-type]
    return shape.arrays(matrix.solve(vector, arrays))


def _solve_matrix(a: Any, b: Any) -> Any:
    if hasattr(a, "tocsc") and framework_of(a) is None:
        from .sparse import sparse_solve

        return sparse_solve(a, b)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise GradsmithError(
            "linear_solve: the matrix is not square\n  expected: shape (..., n, n)\n  "
            f"got: shape {tuple(a.shape)}"
        )
    return gnp.linalg.solve(a, b)


@_door
def root(
    f: Callable[..., Any],
    x0: Any,
    *params: Any,
    tol: float | None = None,
    max_steps: int = 100,
    solver: Callable[..., Any] | None = None,
) -> Any:
    """The x with f(x, *params) = 0, by Newton's method from x0.

    >>> import numpy as np, gradsmith as gs
    >>> cube_root = lambda p: root(lambda x, p: x**3 - p, np.array(1.0), p)
    >>> float(cube_root(np.array(8.0)))
    2.0
    >>> float(gs.grad(cube_root)(np.array(8.0)))  # 1 / (3 x²)
    0.083333...
    """
    shape = Shape(x0, "x0")
    arrays, rebuild = split(params)

    def equation(x: Any, arrays: Any) -> Any:
        return shape.vector(f(shape.arrays(x), *rebuild(arrays)), "f(x)")

    start = shape.vector(x0)
    equation, arrays = calculus_of(x0, arrays).converted(equation, start, arrays)
    equations = Equations(equation, Newton(tol, max_steps), solver=solver)
    return shape.arrays(found(start, arrays, equations))


@_door
def fixed_point(
    g: Callable[..., Any],
    x0: Any,
    *params: Any,
    tol: float | None = None,
    max_steps: int = 1000,
    solver: Callable[..., Any] | None = None,
) -> Any:
    """The x with x = g(x, *params), by iteration from x0.

    >>> import numpy as np
    >>> float(fixed_point(lambda x: np.cos(x), np.array(1.0)))
    0.739085...
    """
    shape = Shape(x0, "x0")
    arrays, rebuild = split(params)

    def equation(x: Any, arrays: Any) -> Any:
        return x - shape.vector(g(shape.arrays(x), *rebuild(arrays)), "g(x)")

    start = shape.vector(x0)
    equation, arrays = calculus_of(x0, arrays).converted(equation, start, arrays)
    equations = Equations(equation, Iteration(tol, max_steps), solver=solver)
    return shape.arrays(found(start, arrays, equations))


@_door
def argmin(
    f: Callable[..., Any],
    x0: Any,
    *params: Any,
    tol: float | None = None,
    max_steps: int = 200,
    solver: Callable[..., Any] | None = None,
) -> Any:
    """The x that makes f(x, *params) least, by Newton's method from x0.

    Its gradient is that of a root of ∂f/∂x: one solve with the Hessian matrix.

    >>> import numpy as np
    >>> argmin(lambda x, p: np.sum((x - p) ** 4 + (x - p) ** 2), np.zeros(2), np.ones(2))
    array([1., 1.])
    """
    shape = Shape(x0, "x0")
    arrays, rebuild = split(params)

    def value(x: Any, arrays: Any) -> Any:
        y = f(shape.arrays(x), *rebuild(arrays))
        if tuple(gnp.shape(y)) != ():
            raise GradsmithError(
                "argmin: f(x) must be a number\n  expected: shape ()\n  "
                f"got: shape {tuple(y.shape)}; sum it up, say"
            )
        return y

    start = shape.vector(x0)
    value, arrays = calculus_of(x0, arrays).converted(value, start, arrays)

    def slope(x: Any, arrays: Any) -> Any:
        (y,), pull = calculus_of(x).vjp(lambda x: [value(x[0], arrays)], [x])
        return pull([gnp.ones_like(y)])[0]

    how = {"symmetric": True, "solver": solver}
    equations = Equations(slope, Descent(value, tol, max_steps), **how)
    return shape.arrays(found(start, arrays, equations))


@_door
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
) -> Any:
    """Solve dy/dt = f(t, y, *params) from y0 at t[0]; y at every time of t.

    Gradients by y0, t and params are solutions of the adjoint equation, backwards in
    time: no step is kept. "dopri5" chooses its steps by rtol and atol; "rk4" makes
    `steps` equal ones between two times.

    >>> import numpy as np, gradsmith as gs
    >>> decay = lambda rate: odeint(
    ...     lambda t, y, rate: -rate * y, np.array(1.0), np.array([0.0, 1.0]), rate
    ... )[-1]
    >>> abs(float(decay(np.array(2.0))) - np.exp(-2)) < 1e-6
    True
    >>> abs(float(gs.grad(decay)(np.array(2.0))) + np.exp(-2)) < 1e-6
    True
    """
    if gnp.ndim(t) != 1 or t.shape[0] < 1:
        raise GradsmithError(
            "odeint: t must be the times at which y is wanted, the first that of y0\n"
            f"  expected: shape (n,) with n >= 1\n  got: shape {tuple(gnp.shape(t))}"
        )
    shape = Shape(y0, "y0")
    arrays, rebuild = split(params)

    def slope(t: Any, y: Any, arrays: Any) -> Any:
        return shape.vector(f(t, shape.arrays(y), *rebuild(arrays)), "f(t, y)")

    y = shape.vector(y0)
    calculus = calculus_of(y0, t, arrays)
    pure, arrays = calculus.converted(
        lambda y, a: slope(a[0], y, a[1:]), y, [t[0], *arrays]
    )
    arrays = arrays[1:]
    flow = Flow(
        lambda t, y, a: pure(y, [t, *a]),
        _solver(method, steps, rtol, atol, max_steps, y),
    )
    ys = [y]
    for i in range(t.shape[0] - 1):
        y = advance(y, t[i], t[i + 1], arrays, flow)
        ys.append(y)
    return _tree.map(lambda *parts: gnp.stack(parts), *map(shape.arrays, ys))


def _solver(
    method: str, steps: int, rtol: Any, atol: Any, max_steps: int, y: Any
) -> Any:
    if method == "rk4":
        return Steps(steps)
    if method == "dopri5":
        close = float(gnp.finfo(y.dtype).eps) ** 0.5
        return Adaptive(rtol or close, atol or close, max_steps)
    raise GradsmithError(
        f"odeint: method={method!r} is not known; use 'dopri5' or 'rk4'"
    )
