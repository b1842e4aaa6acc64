"""How a linear system is solved: factorised, by iteration, or by the user's solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradsmith.numpy as gnp

from .._errors import GradsmithError
from .krylov import conjugate_gradients, gmres

SMALL = 512  # up to so many unknowns the matrix itself is made, and factorised
_TINY = 1e-30  # a right-hand side of zeros
SINGULAR = "the linear system has no solution, or many: its matrix is singular"
UNSOLVED = (
    "the linear system was not solved: the residual is {residual:.1e} of the "
    "right-hand side. A gradient would be wrong.\n  what to do: is the matrix "
    "singular, or said to be symmetric and is not? Give max_steps=, a larger tol=, or "
    "solver=fn(matvec, b)"
)


class SingularError(GradsmithError):
    """A matrix can't be inverted."""


class Solver:
    """Solves push(x) = b so that the residual is at most `tol` of b."""

    def __init__(
        self,
        solver: Callable[..., Any] | None = None,
        tol: float | None = None,
        max_steps: int = 10_000,
    ) -> None:
        self.solver, self.tol, self.max_steps = solver, tol, max_steps

    def __call__(self, push: Any, b: Any, symmetric: bool, calculus: Any) -> Any:
        if self.solver is not None:
            return self.solver(push, b)
        if b.shape[0] <= SMALL:
            return _factorised(calculus.columns(push, b), b)
        method = conjugate_gradients if symmetric else gmres
        return method(push, b, self.tolerance(b), self.max_steps, calculus)

    def tolerance(self, b: Any) -> float:
        """Three quarters of the digits, if nothing else is said."""
        return self.tol or float(gnp.finfo(b.dtype).eps) ** 0.75

    def insist(self, x: Any, residual: Any, b: Any, calculus: Any) -> Any:
        """x; an error if the residual is larger than all rounding explains."""
        off, size = (gnp.sqrt(gnp.sum(r * r)) for r in (residual, b))
        return calculus.insist(
            x,
            off <= 100 * self.tolerance(b) * size + _TINY,
            UNSOLVED,
            residual=off / gnp.where(size > 0, size, 1),
        )


def _factorised(a: Any, b: Any) -> Any:
    try:
        return gnp.linalg.solve(a, b)
    except Exception as error:  # each framework has an error of its own
        if "singular" in str(error).lower() or "invertible" in str(error):
            raise SingularError(SINGULAR) from error
        raise
