"""`linear_solve`: matrices, sparse matrices and functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.arrays import framework_of
from ...core.compilers import not_rewritten
from ...core.errors import GradsmithError, type_of
from .._inputs import number
from .dense import dense_solve
from .linear import Map
from .solvers import Solver, SymmetricSolver
from .vectors import on_vectors


@not_rewritten
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

    `a` is a square matrix or a stack of them; b is a vector if it has one axis, else
    matrices. Or `a` is a sparse SciPy matrix; to differentiate its entries, pass them
    as a parameter. Or it is a function: `a(x, *params)` is linear in x, a tree of
    arrays like b, and `params` are differentiated too. A matrix is then built only for
    up to 512 unknowns. `symmetric` says that the function is symmetric, which is
    checked, and positive definite. `solver(matvec, b)` replaces the solver, for
    vectors.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> def laplace(x, stiffness):
    ...     return 2 * stiffness * x - np.roll(x, 1) - np.roll(x, -1)
    >>> x = gs.ops.linear_solve(laplace, np.array([1.0, 0.0, 0.0]), np.array(2.0))
    >>> laplace(x, 2.0).round(12) + 0
    array([1., 0., 0.])

    Raises
    ------
    GradsmithError
        If the matrix is not square, or singular, or the solver does not converge.
    """
    if not callable(a):
        _refuse(solver=solver, tol=tol, symmetric=symmetric or None)
        return _solve_matrix(a, b, params)
    shape, vector, push, arrays = on_vectors(
        a, b, params, "b", lambda shape, y: shape.vector(y, "a(x)")
    )
    tol, max_steps = number(tol), number(max_steps)
    how = (SymmetricSolver if symmetric else Solver)(solver, tol, max_steps)
    return shape.result(Map(push, symmetric=symmetric, how=how).solve(vector, arrays))


def _solve_matrix(a: Any, b: Any, params: Any) -> Any:
    is_sparse = hasattr(a, "tocoo") and framework_of(a) is None
    if framework_of(a) is None and not is_sparse:
        raise GradsmithError(
            "linear_solve: the matrix is not an array\n  expected: an array of shape "
            "(..., n, n), a sparse matrix of SciPy, or a function\n  "
            f"got: {type(a).__name__}"
        )
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise GradsmithError(
            "linear_solve: the matrix is not square\n  expected: shape (..., n, n)\n  "
            f"got: shape {tuple(a.shape)}"
        )
    if len(params) > is_sparse:
        raise GradsmithError(
            "linear_solve: parameters are for a function of them, or one for the "
            f"entries of a sparse matrix; the matrix given is {type_of(a)}"
        )
    if is_sparse:
        from .sparse import sparse_solve

        return sparse_solve(a, b, *params)
    return dense_solve(a, b)


def _refuse(**options: Any) -> None:
    """What says how to solve for a function, and would do nothing for a matrix."""
    given = [f"{name}=" for name, value in options.items() if value is not None]
    if given:
        raise GradsmithError(
            f"linear_solve: {', '.join(given)} is for a function a(x); a matrix is "
            "factorised\n  what to do: omit it, or give lambda x: a @ x"
        )
