"""Factors of matrices: Cholesky, QR, eigenvectors and singular vectors.

Some factors are not determined by the matrix alone, and LAPACK chooses: the signs of
eigenvectors and singular vectors (the phases, if complex), and the columns of a full Q,
U or V beyond those that belong to the matrix. A rule follows one smooth choice, and the
gradient of a function that does not depend on the choice is right. One that does depend
on it has none, and reverse mode raises: the cotangent of the vectors then has a part
along a change of the choice. Compiled code can't raise, and gives NaN.

Where two eigenvalues (or singular values) are equal up to rounding, their vectors have
no derivative, and the term with the difference of the two in its denominator is left
out. That is right for a function of the values that treats equal ones alike, and of
their vectors only through the space that all of them span. It is not for V f(w) V*
rebuilt from the factors, where the slope of f would be needed between equal values.

A function that reads one triangle of its matrix has its gradient in that triangle.
* is the conjugate transpose, o the product of elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import Any

import numpy as np

from ..core.errors import NotDifferentiableError, UnsupportedOperationError
from ..core.rule import composite, differentiable, primitive
from ..core.symbolic import is_symbolic, seen_any
from ..core.tape import Traced
from ..core.tensor import unwrap
from .linalg import inverse, scalars, size
from .products import column, conj, h, row


def half_lower(like: Any, lower: bool = True) -> Any:
    """Weights: 1 below the diagonal, 1/2 on it, 0 above; or the transpose."""
    n, dtype = like.shape[-1], np.finfo(like.dtype).dtype
    weights = np.tri(n, dtype=dtype) - 0.5 * np.eye(n, dtype=dtype)
    return weights if lower else weights.T


def hermitian(a: Any, lower: bool = True) -> Any:
    """The Hermitian matrix of which `a` has one triangle."""
    half = a * half_lower(a, lower)
    return half + h(half)


def fold(g: Any, lower: bool = True) -> Any:
    """The transpose of `hermitian`: gather a cotangent in one triangle."""
    return (g + h(g)) * half_lower(g, lower)


def with_diagonal(m: Any, d: Any) -> Any:
    """Replace the diagonal."""
    return np.where(np.eye(m.shape[-1], dtype=bool), row(d), m)


def rounding(w: Any) -> Any:
    """What rounding may change in the values of a spectrum.

    Of 300 matrices of 3 x 3 with two equal eigenvalues, LAPACK's were further apart
    than 1/4 of it in 52, and than 1/2 in 4.
    """
    return 4 * np.finfo(w.dtype).eps * np.sum(np.abs(w), axis=-1, keepdims=True)


def inverse_gaps(w: Any) -> Any:
    """1 / (w[j] - w[i]), but 0 for equal values."""
    gap = row(w) - column(w)
    return 1 / np.where(np.abs(gap) <= column(rounding(w)), inf, gap)


def require_no_choice(
    name: str, of: Any, dv: Any, dw: Any, turns: Any, open_: Any = True
) -> Any:
    """`of`; but raise if a function depends on what LAPACK may choose.

    `turns` are its derivatives along changes of the choice, where that is open, as they
    come from the cotangents of the vectors, `dv`, and of the values, `dw`. Compiled
    code can't raise, and has NaN for the matrix.
    """
    if not dv.size or not (is_symbolic(dv) or np.any(unwrap(dv))):
        return of
    turns, dv, dw = (np.abs(unwrap(x)) for x in (turns, dv, dw))
    eps = np.finfo(dv.dtype).eps
    # All of dv may be noise: what is left of terms that cancel, as those of V f(w) V^-1
    noise = eps**0.25 * np.max(dv, (-2, -1), keepdims=True)
    noise = noise + eps**0.5 * (1 + np.max(column(dw), (-2, -1), keepdims=True))
    chosen = open_ & (turns > noise)
    if is_symbolic(chosen):
        return np.where(np.any(chosen, (-2, -1), keepdims=True), nan, of)
    if seen_any(chosen):
        raise NotDifferentiableError(
            f"the result depends on vectors that np.linalg.{name} may choose: on the "
            "phases of complex vectors, on how those of equal values are turned within "
            "their space, or on how the basis is completed. It has no derivative; a "
            "function of the space that they span has one, like V V*."
        )
    return of


def equal_values(w: Any) -> Any:
    """Pairs of different indices whose values are equal up to rounding."""
    w = unwrap(w)
    equal = np.abs(row(w) - column(w)) <= column(rounding(w))
    return equal & ~np.eye(w.shape[-1], dtype=bool)


def phases(m: Any) -> Any:
    """What the diagonal says of changes of phases: its imaginary part, as a column."""
    return column(np.imag(np.diagonal(unwrap(m), axis1=-2, axis2=-1)))


# --- Cholesky ------------------------------------------------------------------------

# A = L L* gives L^-1 dL = half o (L^-1 dA L^-*): the part below the diagonal.


def cholesky_vjp(dy: Any, y: Any, a: Any, /, *, upper: bool = False) -> Any:
    low, dlow = (h(y), h(dy)) if upper else (y, dy)
    inv = inverse(low)
    dm = half_lower(low) * np.matmul(h(low), dlow)
    return fold(np.matmul(h(inv), np.matmul(dm, inv)), lower=not upper)


def cholesky_jvp(dx: Any, y: Any, a: Any, /, *, upper: bool = False) -> Any:
    low = h(y) if upper else y
    inv = inverse(low)
    m = np.matmul(inv, np.matmul(hermitian(dx, lower=not upper), h(inv)))
    dlow = np.matmul(low, half_lower(low) * m)
    return h(dlow) if upper else dlow


differentiable(np.linalg.cholesky, cholesky_vjp, cholesky_jvp, saves="y")

# --- QR ------------------------------------------------------------------------------


@primitive
def qr_factors(a: Any, mode: Any) -> Any:
    """Q and R."""
    return np.linalg.qr(a, mode)


# A = Q R with a square R: Q* dA R^-1 = W + dR R^-1, where W = Q* dQ is antihermitian,
# and dR R^-1 upper triangular with a real diagonal. Hence, with M = R dR* - dQ* Q of
# the cotangents, dA = (dQ + Q herm(M)) R^-*; herm completes the lower triangle.
def qr_vjp(dy: Any, y: Any, a: Any, mode: Any) -> Any:
    (q, r), (dq, dr) = y, dy
    _refuse_dependent(r, dq, dr)
    m, n = a.shape[-2:]
    if m < n:
        return _wide_qr_vjp(dq, dr, q, r)
    if q.shape[-1] > n:
        dq, q = _without_complement(dq, q, n, "qr"), q[..., :n]
        dr, r = dr[..., :n, :], r[..., :n, :]
    lower = np.matmul(r, h(dr)) - np.matmul(h(dq), q)
    return np.matmul(dq + np.matmul(q, hermitian(lower)), h(inverse(r)))


def _refuse_dependent(r: Any, *cotangents: Any) -> None:
    """A column that depends on those before it leaves Q open, and R^-1 infinite.

    A matrix of a batch that nobody uses has zeros for cotangents, and is let pass.
    """
    r = unwrap(r)
    diagonal = np.abs(np.diagonal(r, axis1=-2, axis2=-1))
    noise = max(r.shape[-2:], default=0) * np.finfo(r.dtype).eps
    sizes = np.sqrt(np.sum(np.abs(r) ** 2, axis=-2))[..., : diagonal.shape[-1]]
    bad = np.any(diagonal <= noise * sizes, axis=-1)
    for d in cotangents:
        used = isinstance(d, Traced) or np.any(d != 0, axis=(-2, -1))
        if seen_any(bad & used):
            raise NotDifferentiableError(
                "np.linalg.qr has no derivative at a matrix of too low a rank: a "
                "column depends on those before it, so that Q is not determined. "
                "np.linalg.svd or np.linalg.pinv may say what you mean; or add a "
                "small multiple of the identity to the matrix."
            )


# The first columns of A are Q times the first of R, and then A2 = Q R2.
def _wide_qr_vjp(dq: Any, dr: Any, q: Any, r: Any) -> Any:
    m = q.shape[-1]
    dr2, r2 = dr[..., m:], r[..., m:]
    dq = dq + np.matmul(q, np.matmul(r2, h(dr2)))
    r1, dr1 = r[..., :m], dr[..., :m]
    lower = np.matmul(r1, h(dr1)) - np.matmul(h(dq), q)
    da1 = np.matmul(dq + np.matmul(q, hermitian(lower)), h(inverse(r1)))
    return np.concatenate([da1, np.matmul(q, dr2)], axis=-1)


# Q = [Q1 Q2], where Q2 follows Q1 without turning in itself: dQ2 = -Q1 dQ1* Q2.
def _without_complement(dq: Any, q: Any, n: int, name: str) -> Any:
    """The cotangent of the first n columns, with what those of the others add to it."""
    q1, q2, dq2 = q[..., :n], q[..., n:], dq[..., n:]
    turns = np.matmul(h(q2), dq2)
    zero = np.zeros(1, dq.dtype)
    dq2 = require_no_choice(name, dq2, dq, zero, turns - h(turns))
    return dq[..., :n] - np.matmul(q2, np.matmul(h(dq2), q1))


def qr(a: Any, mode: Any = "reduced") -> Any:
    if mode == "r":
        return qr_factors(a, "reduced")[1]
    if mode not in ("reduced", "complete"):
        raise UnsupportedOperationError(
            f"np.linalg.qr is differentiated with mode='reduced', 'complete' or 'r', "
            f"not {mode!r}"
        )
    return qr_factors(a, mode)


differentiable(qr_factors, qr_vjp, saves="y")
composite(np.linalg.qr, qr, note="raises if a column depends on those before it")

# --- eigenvalues of Hermitian matrices -----------------------------------------------

# A V = V W gives, with P = V* dA V: dW = diag(P) and dV = V (F o P), where F[i, j] is
# the inverse of w[j] - w[i].


def eigh_vjp(dy: Any, y: Any, a: Any, UPLO: Any = "L") -> Any:
    (w, v), (dw, dv) = y, dy
    turns = np.matmul(h(v), dv)
    dp = with_diagonal(inverse_gaps(w) * turns, dw)
    if _complex(v):
        dp = require_no_choice("eigh", dp, dv, dw, phases(turns))
    dp = require_no_choice("eigh", dp, dv, dw, turns - h(turns), equal_values(w))
    return fold(np.matmul(v, np.matmul(dp, h(v))), UPLO.upper() == "L")


def eigh_jvp(dx: Any, y: Any, a: Any, UPLO: Any = "L") -> tuple[Any, Any]:
    w, v = y
    p = np.matmul(h(v), np.matmul(hermitian(dx, UPLO.upper() == "L"), v))
    dw = np.real(np.diagonal(p, axis1=-2, axis2=-1))
    return dw, np.matmul(v, inverse_gaps(w) * p)


def eigvalsh_vjp(dy: Any, y: Any, a: Any, UPLO: Any = "L") -> Any:
    _, v = np.linalg.eigh(a, UPLO)
    return fold(np.matmul(v * row(dy), h(v)), UPLO.upper() == "L")


differentiable(np.linalg.eigh, eigh_vjp, eigh_jvp, saves="y")
differentiable(np.linalg.eigvalsh, eigvalsh_vjp, saves="a")

# --- eigenvalues of general matrices -------------------------------------------------

# As above with P = V^-1 dA V. The columns of V keep length 1, so their changes
# U = V (F o P) lose what is along them: dv = u - v Re(v* u).


def eig_vjp(dy: Any, y: Any, a: Any) -> Any:
    if not a.size:
        return np.zeros(a.shape, a.dtype)
    (w, v), (dw, dv) = y, dy
    left = _left_vectors(a, w, v, dw, dv)
    along = np.real(np.sum(conj(v) * dv, axis=-2, keepdims=True))
    turns = np.matmul(h(v), dv - v * along)
    dp = with_diagonal(conj(inverse_gaps(w)) * turns, dw)
    if _complex(v):
        dp = require_no_choice("eig", dp, dv, dw, phases(turns))
    dp = require_no_choice("eig", dp, dv, dw, turns, equal_values(w))
    return np.matmul(h(left), np.matmul(dp, h(v)))


def eigvals_vjp(dy: Any, y: Any, a: Any) -> Any:
    if not a.size:
        return np.zeros(a.shape, a.dtype)
    w, v = np.linalg.eig(a)
    dw = np.matmul(row(dy), _correspondence(y, w))
    return np.matmul(h(_left_vectors(a, w, v, dy)) * dw, h(v))


def _left_vectors(a: Any, w: Any, v: Any, *cotangents: Any) -> Any:
    """The rows of the inverse of V; those of a defective matrix must not be used."""
    eps = np.finfo(v.dtype).eps
    left = inverse(v, limit=1 / eps)
    condition = size(unwrap(v)) * size(unwrap(left))
    if is_symbolic(v):  # compiled code can't raise
        return np.where(scalars(condition == 0), nan, left)
    _refuse_defective(condition == 0, cotangents)
    inexact = condition > eps**-0.5
    if not seen_any(inexact):
        return left
    return np.where(scalars(inexact), _separate_left_vectors(a, w, v, left), left)


# Where two eigenvectors are nearly dependent, all of the inverse is inexact. The left
# eigenvector of an eigenvalue that stands apart does not depend on them: A* U = U M,
# and U* V is diagonal, up to blocks of equal eigenvalues.
def _separate_left_vectors(a: Any, w: Any, v: Any, left: Any) -> Any:
    """Left eigenvectors without the inverse, as far as they are well conditioned."""
    m, u = np.linalg.eig(h(a))
    own = _correspondence(w, conj(m)).mT > 0
    rows = np.matmul(np.linalg.pinv(np.where(own, np.matmul(h(u), v), 0)), h(u))
    found = np.abs(np.sum(rows * v.mT, axis=-1) - 1) < 0.1
    good = found & (np.sum(np.abs(rows) ** 2, axis=-1) < 1 / np.finfo(v.dtype).eps)
    return np.where(column(good), rows, left)


def _refuse_defective(defective: Any, cotangents: Sequence[Any]) -> None:
    """Matrices of a batch that nobody uses are let pass.

    A zero cotangent does not tell them if all are zero: the sum of the squares of the
    eigenvalues is tr(A^2), whose gradient is 2 A* also where all of them are 0.
    """
    used: Any = False
    for d in cotangents:
        inner = tuple(range(np.ndim(defective), d.ndim))
        used |= isinstance(d, Traced) or np.any(d != 0, axis=inner)
    if seen_any(defective & (used | ~np.any(used))):
        raise NotDifferentiableError(
            "np.linalg.eig and eigvals have no derivative at a defective matrix, which "
            "has fewer eigenvectors than eigenvalues: equal eigenvalues part "
            "infinitely fast. np.trace, np.linalg.det or matrix_power may say what you "
            "mean; or add a small random matrix."
        )


# LAPACK may give the same eigenvalues in another order without the eigenvectors.
def _correspondence(y: Any, w: Any) -> Any:
    """1 where y[i] is w[j], shared equally among values that are equal."""
    distance = np.abs(column(y) - row(w))
    nearest = np.min(distance, axis=-1, keepdims=True)
    near = (distance <= nearest + column(rounding(w))).astype(np.finfo(w.dtype).dtype)
    return near / np.sum(near, axis=-1, keepdims=True)


_DEFECTIVE = "raises if there are not as many eigenvectors as eigenvalues"
differentiable(np.linalg.eig, eig_vjp, saves="a y", note=_DEFECTIVE)
differentiable(np.linalg.eigvals, eigvals_vjp, saves="a y", note=_DEFECTIVE)

# --- singular values -----------------------------------------------------------------


@primitive
def svd_factors(a: Any, full_matrices: bool) -> Any:
    """U, s and V*."""
    return np.linalg.svd(a, full_matrices)


# A = U S V* gives, with P = U* dA V and F[i, j] the inverse of s[j]^2 - s[i]^2:
# dS = Re diag(P), U* dU = F o (P S + S P*), V* dV = F o (S P + P* S), and outside of
# the spaces of U and V: (1 - U U*) dU = (1 - U U*) dA V S^-1, the same for V with dA*.
# The phases: (U* dU - V* dV)[i, i] = i Im P[i, i] / s[i], of which each has one half.
def svd_vjp(dy: Any, y: Any, a: Any, full_matrices: bool) -> Any:
    if not a.size:
        return np.zeros(a.shape, a.dtype)
    (u, s, vh), (du, ds, dvh) = y, dy
    v, dv, k = h(vh), h(dvh), s.shape[-1]
    if u.shape[-1] > k:
        du, u = _without_complement(du, u, k, "svd"), u[..., :k]
    if v.shape[-1] > k:
        dv, v = _without_complement(dv, v, k, "svd"), v[..., :k]
    in_u, in_v = np.matmul(h(u), du), np.matmul(h(v), dv)
    in_u = _require_no_choice_of_svd(s, ds, du, dv, in_u, in_v)
    dp = _svd_frame(in_u, in_v, s)
    dp = with_diagonal(dp, ds + _svd_phases(in_u, in_v, s) if _complex(a) else ds)
    da = np.matmul(np.matmul(u, dp), h(v))
    per_s = row(1 / _positive(s))
    if a.shape[-2] > k:
        da = da + np.matmul((du - np.matmul(u, in_u)) * per_s, h(v))
    if a.shape[-1] > k:
        da = da + np.matmul(u * per_s, h(dv - np.matmul(v, in_v)))
    return da


def _require_no_choice_of_svd(
    s: Any, ds: Any, du: Any, dv: Any, in_u: Any, in_v: Any
) -> Any:
    """Vectors of equal values turn together; those of 0 each by itself."""
    both = np.concatenate([du, dv], axis=-2)
    turn_u, turn_v, equal = in_u - h(in_u), in_v - h(in_v), equal_values(s)
    if _complex(both):
        in_u = require_no_choice("svd", in_u, both, ds, phases(in_u + in_v))
    in_u = require_no_choice("svd", in_u, both, ds, turn_u + turn_v, equal)
    zero = row(unwrap(s) <= rounding(unwrap(s)))
    for turns in (turn_u, turn_v):
        in_u = require_no_choice("svd", in_u, both, ds, turns, equal & zero)
    return in_u


def _svd_frame(in_u: Any, in_v: Any, s: Any) -> Any:
    total = row(s) + column(s)
    f = inverse_gaps(s) / np.where(total > 0, total, inf)
    return f * (in_u - h(in_u)) * row(s) + column(s) * f * (in_v - h(in_v))


def _svd_phases(in_u: Any, in_v: Any, s: Any) -> Any:
    turn = np.imag(np.diagonal(in_u - in_v, axis1=-2, axis2=-1))
    return turn * 0.5j / _positive(s)


def _complex(a: Any) -> bool:
    return a.dtype.kind == "c"


def _positive(s: Any) -> Any:
    """s, with infinity where it is 0 up to rounding."""
    return np.where(s > rounding(s), s, inf)


def svdvals_vjp(dy: Any, y: Any, x: Any, /) -> Any:
    u, s, vh = np.linalg.svd(x, full_matrices=False)
    return np.matmul(u * row(np.where(s > rounding(s), dy, 0)), vh)


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    if hermitian:
        return _svd_of_hermitian(a, compute_uv)
    return svd_factors(a, bool(full_matrices)) if compute_uv else np.linalg.svdvals(a)


# The singular values are the absolute eigenvalues, their signs go to V.
def _svd_of_hermitian(a: Any, compute_uv: bool) -> Any:
    if not compute_uv:
        return np.sort(np.abs(np.linalg.eigvalsh(a)))[..., ::-1]
    w, u = np.linalg.eigh(a)
    order = np.argsort(np.abs(w))[..., ::-1]
    w = np.take_along_axis(w, order, axis=-1)
    u = np.take_along_axis(u, row(order), axis=-1)
    vh = h(u * row(np.copysign(1.0, w)))
    result = type(np.linalg.svd(np.eye(1)))  # has no public name
    return result(u, np.abs(w), vh)


differentiable(svd_factors, svd_vjp, saves="y")
differentiable(np.linalg.svdvals, svdvals_vjp, saves="x", note="0 where it is 0")
composite(np.linalg.svd, svd)
