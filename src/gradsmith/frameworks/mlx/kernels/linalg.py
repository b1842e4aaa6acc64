"""MLX's kernels of linear algebra. It has no gradients of its own for most of them.

Each is an operation with its rule, computed on the CPU, where MLX has them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx
import numpy as np

from ....core.errors import NotDifferentiableError
from ....operations.operation import Operation

_L: Any = mx.linalg


def _adjoint(x: Any) -> Any:
    """The conjugate transpose."""
    x = mx.swapaxes(x, -1, -2)
    return mx.conj(x) if x.dtype == mx.complex64 else x


def _with_vjp(vjp: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    def make(fn: Callable[..., Any]) -> Any:
        operation = Operation(fn, closure=False)
        operation.vjp(vjp)
        return operation

    return make


def matmul(x1: Any, x2: Any) -> Any:
    if mx.issubdtype(x1.dtype, mx.inexact):
        return mx.matmul(x1, x2)
    row, column = x1.ndim == 1, x2.ndim == 1
    x1 = x1[None, :] if row else x1
    x2 = x2[:, None] if column else x2
    y = mx.sum(x1[..., :, :, None] * x2[..., None, :, :], -2).astype(x1.dtype)
    y = mx.squeeze(y, -1) if column else y
    return mx.squeeze(y, -1 if column else -2) if row else y


def tensordot(x1: Any, x2: Any, axes: Any) -> Any:
    """By a product of matrices, for MLX's own takes no whole numbers."""
    pairs = zip((x1, x2), axes, strict=True)
    mine, others = [[i % x.ndim for i in each] for x, each in pairs]
    left = [i for i in range(x1.ndim) if i not in mine]
    right = [i for i in range(x2.ndim) if i not in others]
    n = int(np.prod([x1.shape[i] for i in mine]))
    shape = (*(x1.shape[i] for i in left), *(x2.shape[i] for i in right))
    rows, columns = (
        int(np.prod([x.shape[i] for i in kept]))
        for x, kept in ((x1, left), (x2, right))
    )
    x1 = mx.reshape(mx.transpose(x1, [*left, *mine]), (rows, n))
    x2 = mx.reshape(mx.transpose(x2, [*others, *right]), (n, columns))
    return mx.reshape(matmul(x1, x2), shape)


def einsum(subscripts: str, *xs: Any) -> Any:
    if mx.issubdtype(xs[0].dtype, mx.inexact):
        return mx.einsum(subscripts, *xs)
    wide = [x.astype(mx.float64) for x in xs]  # whole numbers up to 2**53
    with mx.stream(mx.cpu):
        return mx.einsum(subscripts, *wide).astype(xs[0].dtype)


def _inv(x: Any) -> Any:
    return _L.inv(x, stream=mx.cpu)


@_with_vjp(lambda dy, y, x: -_adjoint(y) @ dy @ _adjoint(y))
def inv(x: Any) -> Any:
    return _inv(x)


def _solve_vjp(dx: Any, x: Any, A: Any, b: Any) -> Any:
    db = solve(_adjoint(A), dx)
    return _summed(-db @ _adjoint(x), A.shape), _summed(db, b.shape)


@_with_vjp(_solve_vjp)
def solve(A: Any, b: Any) -> Any:
    stacks = mx.broadcast_shapes(A.shape[:-2], b.shape[:-2])
    A = mx.broadcast_to(A, (*stacks, *A.shape[-2:]))
    b = mx.broadcast_to(b, (*stacks, *b.shape[-2:]))
    return _L.solve(A, b, stream=mx.cpu)


def _summed(dx: Any, shape: Any) -> Any:
    extra = dx.ndim - len(shape)
    axes = [*range(extra), *(extra + i for i, n in enumerate(shape) if n == 1)]
    return mx.reshape(mx.sum(dx, axes), shape) if axes else dx


@_with_vjp(lambda dy, y, x: (dy * y)[..., None, None] * _adjoint(inv(x)))
def det(x: Any) -> Any:
    return _L.det(x, stream=mx.cpu)


@_with_vjp(lambda dy, y, x: dy[1][..., None, None] * _adjoint(inv(x)))
def slogdet(x: Any) -> Any:
    return tuple(_L.slogdet(x, stream=mx.cpu))


def _half(x: Any) -> Any:
    """The lower triangle, with half of the diagonal."""
    return mx.tril(x) - 0.5 * x * mx.eye(x.shape[-1], dtype=x.dtype)


def _cholesky_vjp(dy: Any, y: Any, x: Any) -> Any:
    inverse = inv(y)
    s = _adjoint(inverse) @ _half(_adjoint(y) @ dy) @ inverse
    return (s + _adjoint(s)) / 2


@_with_vjp(_cholesky_vjp)
def cholesky(x: Any) -> Any:
    return _L.cholesky(_lower(x), stream=mx.cpu)


def _lower(x: Any) -> Any:
    """A symmetric matrix of the lower triangle, which alone is read."""
    lower = mx.tril(x)
    return lower + _adjoint(mx.tril(x, -1))


def _gaps(w: Any) -> Any:
    """1 / (w[j] - w[i]), and 0 on the diagonal."""
    gap = w[..., None, :] - w[..., :, None]
    eye = mx.eye(w.shape[-1], dtype=mx.bool_)
    return mx.where(eye, mx.zeros_like(gap), 1 / mx.where(eye, mx.ones_like(gap), gap))


def _eigh_vjp(dy: Any, y: Any, x: Any) -> Any:
    (dw, dv), (w, v) = dy, y
    inner = _diagonal(dw) + _gaps(w) * (_adjoint(v) @ dv)
    dx = v @ inner @ _adjoint(v)
    return (dx + _adjoint(dx)) / 2


def _diagonal(w: Any) -> Any:
    return w[..., None, :] * mx.eye(w.shape[-1], dtype=w.dtype)


@_with_vjp(_eigh_vjp)
def eigh(x: Any) -> Any:
    return tuple(_L.eigh(x, stream=mx.cpu))


def eigvalsh(x: Any) -> Any:
    return eigh(x)[0]


def _svd_vjp(dy: Any, y: Any, x: Any) -> Any:
    """Of a thin decomposition: Townsend, Differentiating the SVD (2016)."""
    (du, ds, dvh), (u, s, vh) = dy, y
    v, dv = _adjoint(vh), _adjoint(dvh)
    gaps = _gaps(s * s)
    s_row, s_column = s[..., None, :], s[..., :, None]
    of_u, of_v = gaps * (_adjoint(u) @ du), gaps * (_adjoint(v) @ dv)
    inner = (
        (of_u + _adjoint(of_u)) * s_row
        + s_column * (of_v + _adjoint(of_v))
        + _diagonal(ds)
    )
    dx = u @ inner @ vh
    if x.shape[-2] > s.shape[-1]:
        rest = du / s_row
        dx = dx + (rest - u @ (_adjoint(u) @ rest)) @ vh
    if x.shape[-1] > s.shape[-1]:
        rest = dv / s_row
        dx = dx + u @ _adjoint(rest - v @ (_adjoint(v) @ rest))
    return dx


@_with_vjp(_svd_vjp)
def _thin_svd(x: Any) -> Any:
    u, s, vh = _L.svd(x, stream=mx.cpu)
    k = s.shape[-1]
    return u[..., :, :k], s, vh[..., :k, :]


def _refuse(what: str) -> Callable[..., Any]:
    def vjp(dy: Any, y: Any, x: Any) -> Any:
        raise NotDifferentiableError(f"{what} has no gradient: take the reduced one")

    return vjp


@_with_vjp(_refuse("the full SVD of a matrix that is not square"))
def _full_svd(x: Any) -> Any:
    return tuple(_L.svd(x, stream=mx.cpu))


def svd(x: Any, full_matrices: bool) -> Any:
    is_full = full_matrices and x.shape[-1] != x.shape[-2]
    return _full_svd(x) if is_full else _thin_svd(x)


def svdvals(x: Any) -> Any:
    return _thin_svd(x)[1]


def _qr_vjp(dy: Any, y: Any, x: Any) -> Any:
    (dq, dr), (q, r) = dy, y
    if x.shape[-1] > x.shape[-2]:
        raise NotDifferentiableError("the QR decomposition of a wide matrix")
    m = r @ _adjoint(dr) - _adjoint(dq) @ q
    low = mx.tril(m, -1)
    symmetric = mx.tril(m) + _adjoint(low)
    return (dq + q @ symmetric) @ _adjoint(inv(r))


@_with_vjp(_qr_vjp)
def _reduced_qr(x: Any) -> Any:
    return tuple(_L.qr(x, stream=mx.cpu))


def qr(x: Any, complete: bool) -> Any:
    if not complete or x.shape[-2] <= x.shape[-1]:
        return _reduced_qr(x)
    return _complete_qr(x)


@_with_vjp(_refuse("the complete QR decomposition"))
def _complete_qr(x: Any) -> Any:
    """Of the matrix with columns of the identity beside it."""
    rows, columns = x.shape[-2:]
    eye = mx.broadcast_to(mx.eye(rows, dtype=x.dtype), (*x.shape[:-2], rows, rows))
    q, r = _L.qr(mx.concatenate([x, eye[..., :, : rows - columns]], -1), stream=mx.cpu)
    return q, r[..., :, :columns]


def _pinv_vjp(dy: Any, y: Any, x: Any, rcond: float) -> Any:
    """Golub and Pereyra (1973)."""
    left = mx.eye(x.shape[-2], dtype=x.dtype) - x @ y
    right = mx.eye(x.shape[-1], dtype=x.dtype) - y @ x
    t = _adjoint(y)
    return left @ _adjoint(dy) @ y @ t + t @ y @ _adjoint(dy) @ right - t @ dy @ t


@_with_vjp(_pinv_vjp)
def pinv(x: Any, rcond: float) -> Any:
    u, s, vh = _thin_svd(x)
    known = s > rcond * mx.max(s, -1, keepdims=True)
    inverse = mx.where(known, 1 / mx.where(known, s, mx.ones_like(s)), mx.zeros_like(s))
    return (_adjoint(vh) * inverse[..., None, :]) @ _adjoint(u)
