"""The pseudoinverse, least squares, and the nearest orthogonal matrix.

* is the conjugate transpose, o the product of elements.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from ..core.rule import composite, differentiable, primitive
from . import decompositions
from .decompositions import fold, inverse_gaps, rounding, svdvals_vjp
from .products import column, h, row

# A = U S V* and Y = U f(S) V*: in the frame of U and V, for P = U* dA V with its
# Hermitian part H and the rest K, the change of Y is D o H + E o K, with
# D[i, j] = (f[i] - f[j]) / (s[i] - s[j]) and E the same with +; outside of the spaces
# of U and V it is that of A times f/s. This needs no change of the vectors, so equal
# singular values are no trouble; and the map from dA to dY is its own transpose.


def replaced_vjp(dy: Any, u: Any, s: Any, vh: Any, f: Any, d: Any) -> Any:
    """A's cotangent from Y's, given `d` for D where neither f[i] nor f[j] is 0."""
    v, k = h(vh), s.shape[-1]
    dp = np.matmul(h(u), np.matmul(dy, v))
    f1, f2, total = column(f), row(f), column(s) + row(s)
    d = np.where((f1 != 0) & (f2 != 0), d, (f2 - f1) * inverse_gaps(s))
    e = (f1 + f2) / np.where(total > 0, total, inf)
    dx = 0.5 * (d * (dp + h(dp)) + e * (dp - h(dp)))
    da = np.matmul(np.matmul(u, dx), vh)
    per_s = row(f / np.where(s > 0, s, inf))
    if u.shape[-2] > k:
        da = da + np.matmul((np.matmul(dy, v) - np.matmul(u, dp)) * per_s, vh)
    if v.shape[-2] > k:
        da = da + np.matmul(u * per_s, np.matmul(h(u), dy) - np.matmul(dp, vh))
    return da


@primitive
def orthogonal_factor(a: Any) -> Any:
    """U V*, without the vectors whose singular value is 0: the gradient of sum(s)."""
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return np.matmul(u * row(s > rounding(s)), vh)


def orthogonal_factor_vjp(dy: Any, y: Any, a: Any) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return replaced_vjp(dy, u, s, vh, (s > rounding(s)).astype(s.dtype), 0)


differentiable(orthogonal_factor, orthogonal_factor_vjp, saves="a")

# --- pseudoinverse -------------------------------------------------------------------

# For a Y of constant rank dY = -Y dA Y + Y Y* dA* (1 - A Y) + (1 - Y A) dA* Y* Y. If
# the caller says from where on singular values count as 0, those may be far from it,
# and the rule above with f(s) = 1/s holds.


def pinv_vjp(
    dy: Any, y: Any, a: Any, rcond: Any = None, hermitian: bool = False, *,
    rtol: Any = None,
) -> Any:  # fmt: skip
    hermitian = hermitian and a.size > 0
    if hermitian:
        a = decompositions.hermitian(a)
    cutoff = rtol if rcond is None else rcond
    da = _pinv_vjp(dy, y, a) if cutoff is None else _truncated_pinv_vjp(dy, a, cutoff)
    return fold(da) if hermitian else da


def _pinv_vjp(dy: Any, y: Any, a: Any) -> Any:
    left = _product(h(dy), y, h(y))
    right = _product(h(y), y, h(dy))
    da = left - _product(a, y, left) + right - _product(right, y, a)
    return da - _product(h(y), dy, h(y))


def _product(a: Any, b: Any, c: Any) -> Any:
    """A B C in the order that costs less."""
    (m, n), (k, last) = a.shape[-2:], c.shape[-2:]
    if m * k * (n + last) <= n * last * (m + k):
        return np.matmul(np.matmul(a, b), c)
    return np.matmul(a, np.matmul(b, c))


def _truncated_pinv_vjp(dy: Any, a: Any, cutoff: Any) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    large = s > np.expand_dims(cutoff, -1) * s[..., :1]
    f = 1 / np.where(large, s, inf)
    return replaced_vjp(h(dy), u, s, vh, f, -column(f) * row(f))


differentiable(
    np.linalg.pinv, pinv_vjp, saves="a y", note="as if the rank stayed the same"
)

# --- least squares -------------------------------------------------------------------


@primitive
def least_squares(a: Any, b: Any, rcond: Any) -> Any:
    """`np.linalg.lstsq`; the singular values count as constants."""
    return np.linalg.lstsq(a, b, rcond)


@primitive
def known_singular_values(a: Any, s: Any) -> Any:
    """s, which are the singular values of a."""
    return s


# X = A^+ B, and the squares' sum of R = B - A X does not change with X.
def lstsq_vjp(dy: Any, y: Any, a: Any, b: Any, rcond: Any) -> tuple[Any, Any]:
    (x, squares, *_), (dx, dsquares, *_) = y, dy
    shape = b.shape
    if b.ndim == 1:
        x, dx, b = column(x), column(dx), column(b)
    # As LAPACK understands a negative cutoff
    cutoff: Any = rcond if rcond is None or rcond >= 0 else np.finfo(a.dtype).eps
    p = np.linalg.pinv(a, rtol=cutoff)
    da = pinv_vjp(np.matmul(dx, h(b)), p, a, rtol=cutoff)
    db = np.matmul(h(p), dx)
    if squares.size:
        dr = (b - np.matmul(a, x)) * (2 * dsquares)
        da, db = da - np.matmul(dr, h(x)), db + dr
    return da, np.reshape(db, shape)


def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    x, squares, rank, s = least_squares(a, b, rcond)
    return x, squares, rank, known_singular_values(a, s)


differentiable(least_squares, lstsq_vjp, saves="a b y", arrays=2)
differentiable(
    known_singular_values,
    (lambda dy, y, a, s: svdvals_vjp(dy, y, a), None),
    saves="a",
    arrays=2,
)
composite(np.linalg.lstsq, lstsq, note="as if the rank stayed the same")
