"""Sparse matrices of SciPy: factorised once, and solved with both ways.

The entries may be an array of their own, in any framework, and have a gradient:

    A x = b,  dx given:   λ = A⁻ᵀ dx,   db = λ,   dA = -λ xᵀ, where A has entries
"""

from __future__ import annotations

from typing import Any

import numpy as np

import gradsmith.numpy as gnp

from ...core.arrays import framework_of
from ...core.errors import GradsmithError
from ...operations.python_op import python_op


class Pattern:
    """Where a matrix has its entries; `own` are those that it was made with."""

    def __init__(self, a: Any) -> None:
        places = a.tocoo()
        self.rows, self.columns, self.own = places.row, places.col, places.data
        self.shape = a.shape
        self._factorised: tuple[Any, Any] = (None, None)

    def matrix(self, values: Any) -> Any:
        from scipy.sparse import coo_array

        values = self.own if values is None else values
        return coo_array((values, (self.rows, self.columns)), self.shape).tocsc()

    def factors(self, values: Any) -> Any:
        """The LU factors, kept for the solves that follow with the same entries."""
        from scipy.sparse.linalg import splu

        before, lu = self._factorised
        if lu is None or not (values is before or np.array_equal(values, before)):
            try:
                lu = splu(self.matrix(values).astype(np.float64))
            except RuntimeError as error:
                raise GradsmithError(f"linear_solve: {error}") from error
            self._factorised = values, lu
        return lu

    def outer(self, u: Any, v: Any) -> Any:
        """u vᵀ where there are entries; of several columns, the sum."""
        found = gnp.take(u, self.rows, axis=0) * gnp.take(v, self.columns, axis=0)
        return found if gnp.ndim(found) == 1 else gnp.sum(found, axis=1)


@python_op
def solve(values: Any, b: Any, pattern: Pattern, transposed: bool) -> Any:
    x = pattern.factors(values).solve(
        b.astype(np.float64), trans="T" if transposed else "N"
    )
    return x.astype(b.dtype)


@solve.vjp
def _(
    dx: Any, x: Any, values: Any, b: Any, pattern: Pattern, transposed: bool
) -> dict[str, Any]:
    adjoint = solve(values, dx, pattern, not transposed)
    if values is None:
        return {"b": adjoint}
    ends = (x, adjoint) if transposed else (adjoint, x)
    return {"values": -pattern.outer(*ends), "b": adjoint}


@solve.jvp
def _(d: Any, x: Any, values: Any, b: Any, pattern: Pattern, transposed: bool) -> Any:
    if values is None:
        return solve(values, d, pattern, transposed)
    dvalues, db = d
    rest = db - times(dvalues, x, pattern, transposed)
    return solve(values, rest, pattern, transposed)


@python_op
def times(values: Any, x: Any, pattern: Pattern, transposed: bool) -> Any:
    a = pattern.matrix(values)
    return (a.T if transposed else a) @ x


@times.vjp
def _(
    dy: Any, y: Any, values: Any, x: Any, pattern: Pattern, transposed: bool
) -> dict[str, Any]:
    ends = (x, dy) if transposed else (dy, x)
    dx = times(values, dy, pattern, not transposed)
    return {"values": pattern.outer(*ends), "x": dx}


def sparse_solve(a: Any, b: Any, values: Any = None) -> Any:
    """x with a x = b, for a sparse matrix, or one with other values at its entries."""
    pattern = Pattern(a)
    if values is not None and gnp.shape(values) != pattern.own.shape:
        raise GradsmithError(
            "linear_solve: the parameter of a sparse matrix holds its entries, in the "
            f"order of a.tocoo().data\n  expected: shape {pattern.own.shape}\n"
            f"  got: shape {tuple(gnp.shape(values))}"
        )
    return solve(*_like_numbers(values, b), pattern, False)


def _like_numbers(values: Any, b: Any) -> tuple[Any, Any]:
    """Both in the same floating-point numbers: those of b, if it has such."""
    if framework_of(b) is None:
        b = gnp.asarray(b) if values is None else gnp.asarray(b, like=values)
    if "float" not in str(b.dtype):
        own = None if values is None else str(values.dtype).split(".")[-1]
        b = gnp.astype(b, own if own and "float" in own else "float64")
    if values is not None and values.dtype != b.dtype:
        values = gnp.astype(values, b.dtype)
    return values, b
