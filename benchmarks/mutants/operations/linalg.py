"""Linear algebra; the wrong formulas forget a transpose."""

from __future__ import annotations

from typing import Any

import gradsmith.numpy as gnp

from ..inputs import definite, invertible, real
from ..operation import define

T = gnp.matrix_transpose
inv, solve = gnp.linalg.inv, gnp.linalg.solve


@define("linear algebra", real("nk"), real("km"))
def matmul(A: Any, B: Any) -> Any:
    return A @ B


@matmul.gradient
def _(dy: Any, y: Any, A: Any, B: Any) -> Any:
    return dy @ T(B), T(A) @ dy


@matmul.variant("formula")
def _(dy: Any, y: Any, A: Any, B: Any) -> Any:
    return dy @ B, A @ dy


@define("linear algebra", real("nm"), real("m"))
def matvec(A: Any, x: Any) -> Any:
    return gnp.sum(A * x, axis=1)


@matvec.gradient
def _(dy: Any, y: Any, A: Any, x: Any) -> Any:
    return dy[:, None] * x[None, :], gnp.sum(dy[:, None] * A, axis=0)


@matvec.variant("wrong axis")
def _(dy: Any, y: Any, A: Any, x: Any) -> Any:
    return dy[:, None] * x[None, :], gnp.sum(dy[None, :] * A, axis=1)


@define("linear algebra", real("n"), real("m"))
def outer(a: Any, b: Any) -> Any:
    return a[:, None] * b[None, :]


@outer.gradient
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    return gnp.sum(dy * b[None, :], axis=1), gnp.sum(dy * a[:, None], axis=0)


@outer.variant("wrong axis")
def _(dy: Any, y: Any, a: Any, b: Any) -> Any:
    return gnp.sum(dy * b[None, :], axis=0), gnp.sum(dy * a[:, None], axis=1)


@define("linear algebra", invertible(), real("nm"))
def linear_solve(A: Any, b: Any) -> Any:
    return solve(A, b)


@linear_solve.gradient
def _(dy: Any, y: Any, A: Any, b: Any) -> Any:
    db = solve(T(A), dy)
    return -db @ T(y), db


@linear_solve.variant("formula")
def _(dy: Any, y: Any, A: Any, b: Any) -> Any:
    db = solve(A, dy)
    return -db @ T(y), db


@define("linear algebra", invertible())
def inverse(A: Any) -> Any:
    return inv(A)


@inverse.gradient
def _(dy: Any, y: Any, A: Any) -> Any:
    return -T(y) @ dy @ T(y)


@inverse.variant("formula")
def _(dy: Any, y: Any, A: Any) -> Any:
    return -y @ dy @ y


@define("linear algebra", invertible())
def logdet(A: Any) -> Any:
    return gnp.linalg.slogdet(A)[1]


@logdet.gradient
def _(dy: Any, y: Any, A: Any) -> Any:
    return dy * T(inv(A))


@logdet.variant("formula")
def _(dy: Any, y: Any, A: Any) -> Any:
    return dy * inv(A)


@define("linear algebra", real("n"), real("nn"))
def quadratic_form(x: Any, A: Any) -> Any:
    return gnp.sum(x[:, None] * A * x[None, :])


@quadratic_form.gradient
def _(dy: Any, y: Any, x: Any, A: Any) -> Any:
    return dy * gnp.sum((A + T(A)) * x, axis=1), dy * (x[:, None] * x[None, :])


@quadratic_form.variant("dropped term")
def _(dy: Any, y: Any, x: Any, A: Any) -> Any:
    return dy * gnp.sum(A * x, axis=1), dy * (x[:, None] * x[None, :])


@quadratic_form.variant("formula")
def _(dy: Any, y: Any, x: Any, A: Any) -> Any:
    # right for symmetric matrices
    return dy * 2 * gnp.sum(A * x, axis=1), dy * (x[:, None] * x[None, :])


@define("linear algebra", definite())
def cholesky(A: Any) -> Any:
    return gnp.linalg.cholesky(0.5 * (A + T(A)))


@cholesky.gradient
def _(dy: Any, y: Any, A: Any) -> Any:
    # S = L⁻ᵀ Φ(Lᵀ dL) L⁻¹, Φ the lower triangle with half the diagonal
    L = inv(y)
    S = T(L) @ _half_lower(T(y) @ gnp.tril(dy)) @ L
    return 0.5 * (S + T(S))


def _half_lower(M: Any) -> Any:
    return 0.5 * (gnp.tril(M) + gnp.tril(M, -1))


@cholesky.variant("formula")
def _(dy: Any, y: Any, A: Any) -> Any:
    L = inv(y)
    S = T(L) @ gnp.tril(T(y) @ gnp.tril(dy)) @ L  # the whole diagonal
    return 0.5 * (S + T(S))


@define("linear algebra", real("nm"), real("mn"))
def trace_product(A: Any, B: Any) -> Any:
    return gnp.sum(A * T(B))


@trace_product.gradient
def _(dy: Any, y: Any, A: Any, B: Any) -> Any:
    return dy * T(B), dy * T(A)


@define("linear algebra", real("nm"))
def gram(A: Any) -> Any:
    return T(A) @ A


@gram.gradient
def _(dy: Any, y: Any, A: Any) -> Any:
    return A @ (dy + T(dy))


@gram.variant("dropped term")
def _(dy: Any, y: Any, A: Any) -> Any:
    return A @ dy


@gram.variant("formula")
def _(dy: Any, y: Any, A: Any) -> Any:
    return 2 * A @ dy  # right for a symmetric dy
