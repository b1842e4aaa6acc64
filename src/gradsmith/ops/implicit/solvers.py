"""How a linear system is solved: factorised, by iteration, or by the user's solver."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradsmith.numpy as gnp

from ...core.errors import GradsmithError
from .krylov import conjugate_gradients, gmres
from .sizes import largest, norm, precision, probe

SMALL = 512  # up to so many unknowns the matrix itself is made, and factorised
_ROUNDING = 100  # units of rounding that a solution's residual may have
SINGULAR = "the linear system has no solution, or many: its matrix is singular"
UNSOLVED = (
    "the linear system was not solved: the residual is {residual:.1e} of the "
    "right-hand side. A gradient would be wrong.\n  what to do: is the matrix "
    "singular, or symmetric=True and it is not? Give max_steps=, a larger tol=, or "
    "solver=fn(matvec, b)"
)


UNSYMMETRIC = (
    "linear_solve: symmetric=True, and the function is not: ⟨a(v), x⟩ and ⟨v, a(x)⟩ "
    "differ by {difference:.1e} of their size. A gradient would be wrong.\n  what to "
    "do: omit symmetric=True"
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

    def __call__(self, push: Any, b: Any, symmetric: bool, compiled: Any) -> Any:
        if self.solver is not None:
            return self.solver(push, b)
        if b.shape[0] <= SMALL:
            return factorised(compiled.columns(push, b), b)
        method = conjugate_gradients if symmetric else gmres
        unit = largest(b)  # the squares of what is left neither overflow nor vanish
        tol = self.tolerance(b)
        return unit * method(push, b / unit, tol, self.max_steps, compiled)

    def tolerance(self, b: Any) -> float:
        """Three quarters of the digits, if nothing else is said."""
        return self.tol or precision(b) ** 0.75

    def insist(self, x: Any, residual: Any, b: Any, push: Any, compiled: Any) -> Any:
        """x; an error if the residual is larger than rounding explains.

        Rounding leaves |A| |x| eps of it, much where the matrix is nearly singular; but
        where that is a good part of b, nothing is solved.
        """
        off, size, long = norm(residual), norm(b), norm(x)
        rounding = _ROUNDING * precision(b) * _gain(push, b) * long
        allowed = 100 * self.tolerance(b) * size + gnp.minimum(rounding, 0.01 * size)
        ratio = off / gnp.where(size > 0, size, 1)
        return compiled.insist(x, off <= allowed, UNSOLVED, residual=ratio)


class SymmetricSolver(Solver):
    """For a map that the user says is symmetric."""

    def insist(self, x: Any, residual: Any, b: Any, push: Any, compiled: Any) -> Any:
        """The same; an error if (A - Aᵀ) x is not zero.

        It is if ⟨A v, x⟩ = ⟨v, A x⟩ for a vector v that knows nothing of A. If that
        holds, x also solves the system with the transposed matrix: all that its
        gradient, or that of which it is the adjoint, is made of.
        """
        v = probe(b) - 1  # of no sign: it does not see a mean alone
        av, long = push(v), norm(x)
        unit = gnp.where(long > 0, long, 1)
        x1, ax1 = x / unit, (residual + b) / unit
        off = gnp.abs(gnp.sum(av * x1) - gnp.sum(v * ax1))
        # |v| is about √n: by chance, ⟨v, r⟩ is about |r|; its sum rounds √n times.
        root = max(b.shape[0], 1) ** 0.5
        size = (norm(av) + norm(v) * norm(ax1)) / root
        holds = off <= (_ROUNDING + 10 * root) * precision(b) * size
        ratio = off / gnp.where(size > 0, size, 1)
        x = compiled.insist(x, holds, UNSYMMETRIC, difference=ratio)
        return super().insist(x, residual, b, push, compiled)


def _gain(push: Any, b: Any) -> Any:
    """About |A|: what it does to a vector that lies along no axis."""
    v = probe(b)
    return norm(push(v)) / norm(v)


def factorised(a: Any, b: Any) -> Any:
    try:
        return gnp.linalg.solve(a, b)
    except Exception as error:  # each framework has an error of its own
        if "singular" in str(error).lower() or "invertible" in str(error):
            raise SingularError(SINGULAR) from error
        raise
