"""Equations, inverses, determinants and powers of matrices, and stacks of them.

* is the conjugate transpose throughout.
"""

from __future__ import annotations

from math import inf, prod
from operator import index
from typing import Any

import numpy as np

from ..core.rule import composite, differentiable, linear, nondifferentiable, primitive
from .products import column, conj, h, row


def scalars(x: Any) -> Any:
    """Numbers, one per matrix of a stack, ready to multiply the matrices."""
    return np.reshape(x, (*x.shape, 1, 1))


# A Y = B gives A dY = dB - dA Y, so B's cotangent solves the adjoint equation,
# A* G = dY, and A's is -G Y*. A b with one axis is a vector, else it holds matrices.


def solve_vjp(dy: Any, y: Any, a: Any, b: Any) -> tuple[Any, Any]:
    if b.ndim == 1:
        db = np.linalg.solve(h(a), column(dy))
        return np.matmul(-db, row(conj(y))), db[..., 0]
    db = np.linalg.solve(h(a), dy)
    return np.matmul(-db, h(y)), db


def solve_jvp(dx: Any, y: Any, a: Any, b: Any) -> Any:
    da, db = dx
    if b.ndim == 1:
        return np.linalg.solve(a, column(db - np.matmul(da, column(y))[..., 0]))[..., 0]
    return np.linalg.solve(a, db - np.matmul(da, y))


differentiable(np.linalg.solve, solve_vjp, solve_jvp, saves="a y", arrays=2)


def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """`np.linalg.tensorsolve` as an equation of one matrix."""
    a, b = (x if hasattr(x, "ndim") else np.asarray(x) for x in (a, b))
    if axes is not None:
        last = [i % a.ndim for i in axes]
        a = np.transpose(a, [i for i in range(a.ndim) if i not in last] + last)
    shape = a.shape[b.ndim :]
    matrix = np.reshape(a, (b.size, prod(shape)))
    return np.reshape(np.linalg.solve(matrix, np.reshape(b, -1)), shape)


def tensorinv(a: Any, ind: int = 2) -> Any:
    """`np.linalg.tensorinv` as the inverse of one matrix."""
    if ind <= 0:
        raise ValueError("Invalid ind argument.")
    left, right = a.shape[:ind], a.shape[ind:]
    matrix = np.reshape(a, (prod(left), prod(right)))
    return np.reshape(np.linalg.inv(matrix), right + left)


composite(np.linalg.tensorsolve, tensorsolve)
composite(np.linalg.tensorinv, tensorinv)

# Y = A^-1 gives dY = -Y dA Y.


def inv_vjp(dy: Any, y: Any, a: Any, *_: Any, **__: Any) -> Any:
    return np.matmul(h(-y), np.matmul(dy, h(y)))


def inv_jvp(dx: Any, y: Any, a: Any, *_: Any, **__: Any) -> Any:
    return np.matmul(-y, np.matmul(dx, y))


@primitive
def inverse(a: Any, limit: float = inf) -> Any:
    """The inverse; 0 for a matrix without one, or conditioned beyond a limit."""
    try:
        y = np.linalg.inv(a)
    except np.linalg.LinAlgError:
        singular = scalars(np.linalg.slogdet(a)[0] == 0)
        y = np.linalg.inv(np.where(singular, np.eye(a.shape[-1], dtype=a.dtype), a))
        y = np.where(singular, 0, y)
    good = np.isfinite(y)
    if limit < inf:
        good &= scalars(size(a) * size(y)) <= limit
    return np.where(good, y, 0)


def size(a: Any) -> Any:
    """The Frobenius norms of a stack of matrices."""
    return np.sqrt(np.sum(np.abs(a) ** 2, axis=(-2, -1)))


differentiable(np.linalg.inv, inv_vjp, inv_jvp, saves="y")
differentiable(inverse, inv_vjp, inv_jvp, saves="y")


def matrix_power(a: Any, n: Any) -> Any:
    """`np.linalg.matrix_power` with NumPy's order of products: by the bits of n."""
    n = index(n)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError("the last two dimensions must be square")
    if n == 0:
        return np.zeros_like(a) + np.eye(a.shape[-1], dtype=a.dtype)
    if n < 0:
        a, n = np.linalg.inv(a), -n
    if n == 3:
        return np.matmul(np.matmul(a, a), a)
    square, y = a, None
    while True:
        n, bit = divmod(n, 2)
        if bit:
            y = square if y is None else np.matmul(y, square)
        if not n:
            return y
        square = np.matmul(square, square)


composite(np.linalg.matrix_power, matrix_power)

# d det = sum of C * dA with the cofactors C = det(A) A^-T, which every matrix has. From
# A = U S V*: C = det(U) det(V*) conj(U P V*), P[i] the product of all s but s[i].


@primitive
def cofactors(a: Any) -> Any:
    """The matrix of cofactors.

    The inverse gives them accurately even near a singular matrix, because what is wrong
    with it and with the determinant there cancels; not for a singular matrix itself.
    """
    try:
        y = scalars(np.linalg.det(a)) * np.linalg.inv(a).mT
    except np.linalg.LinAlgError:
        return _cofactors_by_svd(a)
    return y if np.all(np.isfinite(y)) else _cofactors_by_svd(a)


def _cofactors_by_svd(a: Any) -> Any:
    u, s, vh = np.linalg.svd(a)
    others = np.where(np.eye(s.shape[-1], dtype=bool), 1, row(s))
    y = np.matmul(u * row(np.prod(others, axis=-1)), vh)
    return _orientation(u, vh) * conj(y)


def _orientation(u: Any, vh: Any) -> Any:
    return scalars(np.linalg.det(u) * np.linalg.det(vh))


# In the adjugate C^T = det(U) det(V*) V M U*, M is the adjugate of a diagonal matrix,
# and a change W = U* dA V of that gives dM[i, k] = -Q[i, k] W[i, k] and
# dM[i, i] = sum over k of Q[i, k] W[k, k], with Q[i, k] the product of all s but s[i]
# and s[k], and Q[i, i] = 0. The map from W to dM is its own transpose.
def cofactors_vjp(dy: Any, y: Any, a: Any) -> Any:
    u, s, vh = np.linalg.svd(a)
    dm = np.matmul(np.matmul(vh, dy.mT * conj(_orientation(u, vh))), u)
    q = _products_without_two(s)
    diagonal = np.matmul(q, column(np.diagonal(dm, axis1=-2, axis2=-1)))
    dw = np.where(np.eye(s.shape[-1], dtype=bool), diagonal, -q * dm)
    return np.matmul(np.matmul(u, dw), vh)


def _products_without_two(s: Any) -> Any:
    n = s.shape[-1]
    one = np.eye(n, dtype=bool)
    left_out = one[:, None, :] | one[None, :, :]
    q = np.prod(np.where(left_out, 1, row(row(s))), axis=-1)
    return np.where(one, 0, q)


differentiable(cofactors, cofactors_vjp, saves="a")
differentiable(
    np.linalg.det,
    lambda dy, y, a: scalars(dy) * conj(cofactors(a)),
    lambda dx, y, a: np.sum(cofactors(a) * dx, axis=(-2, -1)),
    saves="a",
)


# d log|det| = Re t and d sign = i Im(t) sign, with t = tr(A^-1 dA); 0 if A is singular.
def slogdet_vjp(dy: Any, y: Any, a: Any) -> Any:
    (dsign, dlog), (sign, _) = dy, y
    if a.dtype.kind == "c":
        dlog = dlog + np.imag(conj(sign) * dsign) * 1j
    return scalars(dlog) * h(inverse(a))


def slogdet_jvp(dx: Any, y: Any, a: Any) -> tuple[Any, Any]:
    sign = y[0]
    t = np.sum(inverse(a).mT * dx, axis=(-2, -1))
    if a.dtype.kind == "c":
        return np.imag(t) * 1j * sign, np.real(t)
    return np.zeros_like(sign), t


differentiable(
    np.linalg.slogdet, slogdet_vjp, slogdet_jvp, saves="a y", note="0 if a is singular"
)

# Parts of matrices

linear(np.linalg.matrix_transpose, lambda dy, y, x, /: dy.mT)
composite(
    np.linalg.diagonal,
    lambda x, /, *, offset=0: np.diagonal(x, offset, axis1=-2, axis2=-1),
)
composite(
    np.linalg.trace,
    lambda x, /, *, offset=0, dtype=None: np.trace(
        x, offset, axis1=-2, axis2=-1, dtype=dtype
    ),
)
nondifferentiable("it returns a whole number", np.linalg.matrix_rank)
