"""Norms of vectors and matrices, and the condition number.

Every norm's gradient is 0 at 0. Where several elements (columns, singular values) are
the largest or smallest together, they share the gradient equally.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from ..core.rule import composite, differentiable
from .axes import by_lines
from .linalg import inverse, scalars
from .products import h, row
from .spectral import orthogonal_factor
from .wide import is_coarse, is_narrow


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


# y = (sum of |x|^p)^(1/p) gives dx = dy (|x|/y)^(p-1) x/|x|, of which 2, 1 and the
# limits inf and -inf are plain. y and dy come with the axes kept, of length 1.


def vector_norm_dx(dy: Any, y: Any, x: Any, p: Any, axes: tuple[int, ...]) -> Any:
    if p not in (0, 1, inf, -inf) and is_narrow(x) and not _is_easy(p, dy, y):
        return by_lines(lambda dy, x: _precise_dx(dy, x, p), axes, dy, x)
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


# In float32 squares overflow from 1e19 on, and have lost digits below 1e-18; other
# powers magnify the rounding of y.
def _is_easy(p: Any, dy: Any, y: Any) -> bool:
    if p not in (None, 2) or type(y) is not np.ndarray or not y.size:
        return False
    usual = _LEAST[y.dtype.char] <= np.min(y) and np.max(y) < inf
    return bool(usual) and not is_coarse(dy / y)


_LEAST = {"e": 0.125, "f": 1e-15}  # whose square has all its digits


def _precise_dx(dy: Any, x: Any, p: Any) -> Any:
    y = np.linalg.norm(x, p, axis=-1, keepdims=True)
    return vector_norm_dx(dy, y, x, p, (-1,))


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
    # 1 takes the largest column of |x|, inf the largest row, -1 and -inf the smallest
    along, across = (-2, -1) if p in (1, -1) else (-1, -2)
    sums = np.sum(np.abs(x), axis=along, keepdims=True)
    extreme = (np.max if p > 0 else np.min)(sums, axis=across, keepdims=True)
    return direction(x) * (dy * chosen(sums, extreme, across))


def _extreme_singular(x: Any, p: int) -> Any:
    """The vectors of the largest or smallest singular value, u v*; 0 if that is 0."""
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    extreme = s[..., :1] if p > 0 else s[..., -1:]
    weights = np.where(extreme > 0, chosen(s, extreme, -1), 0)
    return np.matmul(u * row(weights), vh)


def norm_vjp(
    dy: Any,
    y: Any,
    x: Any,
    ord: Any = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Any:
    axes = _axes(axis, x.ndim)
    matrix = len(axes) == 2 and (axis is not None or ord is not None)
    dy, y = _with_axes(dy, x.shape, axes), _with_axes(y, x.shape, axes)
    if not matrix:
        return vector_norm_dx(dy, y, x, ord, axes)
    last = (-2, -1)
    dy, y, x = (np.moveaxis(z, axes, last) for z in (dy, y, x))
    return np.moveaxis(matrix_norm_dx(dy, y, x, ord), last, axes)


def vector_norm_vjp(
    dy: Any,
    y: Any,
    x: Any,
    /,
    *,
    axis: Any = None,
    keepdims: bool = False,
    ord: Any = 2,
) -> Any:
    axes = _axes(axis, x.ndim)
    dy, y = _with_axes(dy, x.shape, axes), _with_axes(y, x.shape, axes)
    return vector_norm_dx(dy, y, x, ord, axes)


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(a % ndim for a in axes)


def _with_axes(y: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """A reduction's result with its axes kept, of length 1."""
    return np.reshape(y, [1 if i in axes else n for i, n in enumerate(shape)])


differentiable(np.linalg.norm, norm_vjp, saves="x y", note="0 at 0")
differentiable(np.linalg.vector_norm, vector_norm_vjp, saves="x y", note="0 at 0")
composite(
    np.linalg.matrix_norm,
    lambda x, /, **options: np.linalg.norm(x, axis=(-2, -1), **options),
)


# y = |x| |x^-1|; with the 2-norm the largest singular value over the smallest, also for
# a matrix that is not square, and with -2 the reverse.
def cond_vjp(dy: Any, y: Any, x: Any, p: Any = None) -> Any:
    if p in (None, 2, -2):
        return _cond_by_svd(dy, x, inverted=p == -2)
    dy = np.real(dy)  # y is complex of a complex x before NumPy 2.3, its number real
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
