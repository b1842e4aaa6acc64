"""Norms of vectors and matrices, and the condition number.

Every norm's gradient is 0 at 0. Where several elements (columns, singular values) are
the largest or smallest together, they share the gradient equally.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from .._rule import composite, differentiable
from .linalg import inverse, scalars
from .products import h, row
from .spectral import orthogonal_factor


def direction(x: Any) -> Any:
    """x/|x|, and 0 at 0: where |x| grows fastest."""
    if x.dtype.kind != "c":
        return np.sign(x)
    size = np.abs(x)
    return x / np.where(size > 0, size, inf)


def chosen(x: Any, y: Any, axis: Any) -> Any:
    """1 where x is y, shared equally if it is so at several places along the axis."""
    mask = (x == y).astype(x.dtype)
    return mask / np.sum(mask, axis=axis, keepdims=True)


# y = (sum of |x|^p)^(1/p) gives dx = dy (|x|/y)^(p-1) x/|x|, of which 2, 1 and the limits
# inf and -inf are plain. The rules below want y and dy with axes of length 1 kept.


def vector_norm_dx(dy: Any, y: Any, x: Any, p: Any, axes: tuple[int, ...]) -> Any:
    if p is None or p == 2:
        return x * (dy / np.where(y > 0, y, inf))
    if p == 0 or not x.size:
        return np.zeros(x.shape, x.dtype)
    if p == 1:
        return dy * direction(x)
    size = np.abs(x)
    if p in (inf, -inf):
        return direction(x) * (dy * chosen(size, y, axes))
    share = size / np.where(y > 0, y, inf)
    if p < 1:
        share = np.where(share > 0, share, inf)
    return direction(x) * (dy * share ** (float(p) - 1))


# For a matrix as the last two axes


def matrix_norm_dx(dy: Any, y: Any, x: Any, p: Any) -> Any:
    if p in (None, "fro", "f"):
        return vector_norm_dx(dy, y, x, 2, (-2, -1))
    if not x.size:
        return np.zeros(x.shape, x.dtype)
    if p == "nuc":
        return dy * orthogonal_factor(x)
    if p in (2, -2):
        return dy * _extreme_singular(x, p)
    # 1 takes the largest column of |x|, inf the largest row, and -1 and -inf the smallest
    along, across = (-2, -1) if p in (1, -1) else (-1, -2)
    sums = np.sum(np.abs(x), axis=along, keepdims=True)
    extreme = (np.max if p > 0 else np.min)(sums, axis=across, keepdims=True)
    return direction(x) * (dy * chosen(sums, extreme, across))


def _extreme_singular(x: Any, p: int) -> Any:
    """u v* of the largest or smallest singular value; 0 if that is 0."""
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    extreme = s[..., :1] if p > 0 else s[..., -1:]
    weights = np.where(extreme > 0, chosen(s, extreme, -1), 0)
    return np.matmul(u * row(weights), vh)


def norm_vjp(
    dy: Any, y: Any, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False
) -> Any:
    if axis is None:
        axes = tuple(range(x.ndim))
        matrix = ord is not None and x.ndim == 2
    else:
        axes = tuple(a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,)))
        matrix = len(axes) == 2
    dy, y = _with_axes(dy, x.shape, axes), _with_axes(y, x.shape, axes)
    if not matrix:
        return vector_norm_dx(dy, y, x, ord, axes)
    last = (-2, -1)
    dx = matrix_norm_dx(*(np.moveaxis(z, axes, last) for z in (dy, y, x)), ord)
    return np.moveaxis(dx, last, axes)


def _with_axes(y: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """A reduction's result with its axes kept, of length 1."""
    return np.reshape(y, [1 if i in axes else n for i, n in enumerate(shape)])


def vector_norm_vjp(
    dy: Any, y: Any, x: Any, /, *, axis: Any = None, keepdims: bool = False,
    ord: Any = 2,
) -> Any:  # fmt: skip
    if axis is None:
        axis = range(x.ndim)
    axes = tuple(a % x.ndim for a in ([axis] if isinstance(axis, int) else axis))
    dy, y = _with_axes(dy, x.shape, axes), _with_axes(y, x.shape, axes)
    return vector_norm_dx(dy, y, x, ord, axes)


differentiable(np.linalg.norm, norm_vjp, saves="x y", note="0 at 0")
differentiable(np.linalg.vector_norm, vector_norm_vjp, saves="x y", note="0 at 0")
composite(
    np.linalg.matrix_norm,
    lambda x, /, *, keepdims=False, ord="fro": np.linalg.norm(
        x, ord=ord, axis=(-2, -1), keepdims=keepdims
    ),
)


# y = |x| |x^-1|; with the 2-norm the largest singular value over the smallest, also for a
# matrix that is not square, and with -2 the reverse.
def cond_vjp(dy: Any, y: Any, x: Any, p: Any = None) -> Any:
    if p in (None, 2, -2):
        return _cond_by_svd(dy, x, inverted=p == -2)
    inv = inverse(x)
    size, inv_size = (np.linalg.matrix_norm(z, ord=p, keepdims=True) for z in (x, inv))
    dx = matrix_norm_dx(scalars(dy) * inv_size, size, x, p)
    dinv = matrix_norm_dx(scalars(dy) * size, inv_size, inv, p)
    return dx - np.matmul(h(inv), np.matmul(dinv, h(inv)))


def _cond_by_svd(dy: Any, x: Any, inverted: bool) -> Any:
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    above, below = s[..., :1], s[..., -1:]
    if inverted:
        above, below = below, above
    divisor = np.where(below > 0, below, inf)
    ds = (chosen(s, above, -1) - above / divisor * chosen(s, below, -1)) / divisor
    return np.matmul(u * row(np.expand_dims(dy, -1) * ds), vh)


differentiable(np.linalg.cond, cond_vjp, saves="x", note="0 if x is singular")
