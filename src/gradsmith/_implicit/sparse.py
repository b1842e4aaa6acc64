"""Sparse matrices of SciPy: factorised once, and solved with both ways."""

from __future__ import annotations

from typing import Any

from .._python_op import python_op


class Factors:
    """The LU factors of a matrix, made when they are first asked for."""

    def __init__(self, a: Any) -> None:
        self.a, self._lu = a.tocsc(), None

    def solve(self, b: Any, *, transposed: bool) -> Any:
        from scipy.sparse.linalg import splu

        if self._lu is None:
            self._lu = splu(self.a)
        return self._lu.solve(b, trans="T" if transposed else "N")


@python_op
def _solve(b: Any, factors: Factors, transposed: bool) -> Any:
    return factors.solve(b, transposed=transposed).astype(b.dtype)


@_solve.vjp
def _(dx: Any, x: Any, b: Any, factors: Factors, transposed: bool) -> Any:
    return _solve(dx, factors, not transposed)


@_solve.jvp
def _(db: Any, x: Any, b: Any, factors: Factors, transposed: bool) -> Any:
    return _solve(db, factors, transposed)


def sparse_solve(a: Any, b: Any) -> Any:
    """x with a x = b, for a sparse matrix that is a constant."""
    return _solve(b, Factors(a), False)
