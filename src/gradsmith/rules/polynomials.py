"""Polynomials by their coefficients, the highest power first."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.cotangent import unbroadcast
from ..core.errors import UnsupportedOperationError
from ..core.places import warn_user
from ..core.pool import new
from ..core.rule import RULES, Function, composite, differentiable, primitive
from .arithmetic import over
from .axes import as_array, as_type, conj

# Values, roots and powers. With p of degree n,
#   y = sum over k of p[k] x**(n-k),   dy = p'(x) dx + sum over k of dp[k] x**(n-k).


def descending(n: int, like: Any) -> Any:
    """n, n-1, ..., 1 along the first axis of an array like this."""
    return np.reshape(np.arange(n, 0, -1), (n,) + (1,) * (like.ndim - 1))


def derivative(p: Any) -> Any:
    """The coefficients of p'."""
    return p[:-1] * descending(max(p.shape[0] - 1, 0), p)


@primitive
def polynomial(p: Any, x: Any) -> Any:
    return np.polyval(p, x)


def polynomial_dp(dy: Any, y: Any, p: Any, x: Any) -> Any:
    x, terms = conj(x), []
    for _ in range(p.shape[0]):
        terms.append(unbroadcast(dy, p.shape[1:]))
        dy = dy * x
    return np.stack(terms[::-1]) if terms else np.zeros(p.shape, dy.dtype)


def polynomial_dx(dy: Any, y: Any, p: Any, x: Any) -> Any:
    return dy * conj(polynomial(derivative(p), x))


def polynomial_jvp(ds: Any, y: Any, p: Any, x: Any) -> Any:
    return polynomial(derivative(p), x) * ds[1] + polynomial(ds[0], x)


differentiable(
    polynomial, (polynomial_dp, polynomial_dx), polynomial_jvp, saves="p x", arrays=2
)


def polyval(p: Any, x: Any) -> Any:
    if isinstance(x, np.poly1d):
        raise UnsupportedOperationError(
            "np.polyval is differentiated at numbers, and x is a poly1d. Multiply the "
            "polynomials out by np.polymul."
        )
    return polynomial(as_array(p), as_array(x))


composite(np.polyval, polyval)


# A root moves by dr = -dp(r) / p'(r).
def roots_vjp(dr: Any, y: Any, p: Any) -> Any:
    pull = over(dr, conj(polynomial(derivative(p), y)))
    return -polynomial_dp(pull, y, p, y)


def roots_jvp(dp: Any, y: Any, p: Any) -> Any:
    return -over(polynomial(dp, y), polynomial(derivative(p), y))


differentiable(
    np.roots,
    roots_vjp,
    roots_jvp,
    saves="p y",
    note="0 for a multiple root, which moves infinitely fast",
)


# Powers

FEW = 500  # elements of which each product gives several powers


def powers(x: Any, *options: Any, **named: Any) -> Any:
    """`np.vander`, each power a row in memory: a tenth of its time for 4096 x 128.

    Each row is x times the one before, as NumPy multiplies. Of few elements, a product
    gives twice as many powers, x**j * x**k: 0.4 of the time for 64 x 128.
    """
    if x.__class__ is not np.ndarray or x.ndim != 1 or x.dtype.kind not in "biufc":
        return np.vander(x, *options, **named)
    return _powers(x, *options, **named)


def vander(x: Any, *options: Any, **named: Any) -> Any:
    """`np.vander` to the last bit, by `powers` where these are the same."""
    same = x.__class__ is np.ndarray and x.dtype.kind == "f" and x.size >= FEW
    return (powers if same else np.vander)(x, *options, **named)


def _powers(x: Any, N: Any = None, increasing: bool = False) -> Any:
    many = len(x)
    n = many if N is None else N
    dtype = np.promote_types(x.dtype, int)  # as NumPy's
    y = new((n, many), dtype)
    rows = y if increasing else y[::-1]
    rows[:1], rows[1:2], known = 1, x, 1
    while known < n - 1:
        more = min(known if many < FEW else 1, n - 1 - known)
        first = 1 if more > 1 else known
        base = rows[known if more > 1 else 1]
        out = rows[known + 1 : known + 1 + more]
        np.multiply(rows[first : first + more], base, out)
        known += more
    return y.T


# Column j is x**k, and column j-1 or j+1 is x**(k-1).
def vander_slopes(y: Any, increasing: bool) -> tuple[slice, Any]:
    """The columns that vary, and their derivatives."""
    n = y.shape[1]
    if increasing:
        return slice(1, None), y[:, :-1] * np.arange(1, n)
    return slice(None, -1), y[:, 1:] * np.arange(n - 1, 0, -1)


def vander_vjp(dy: Any, y: Any, x: Any, N: Any = None, increasing: bool = False) -> Any:
    if not y.shape[1]:
        return np.zeros(x.shape, x.dtype)
    columns, slopes = vander_slopes(y, increasing)
    return np.sum(dy[:, columns] * conj(slopes), axis=1)


def vander_jvp(dx: Any, y: Any, x: Any, N: Any = None, increasing: bool = False) -> Any:
    if not y.shape[1]:
        return np.zeros(y.shape, y.dtype)
    _, slopes = vander_slopes(y, increasing)
    dy = slopes * np.expand_dims(dx, 1)
    none = np.zeros((x.shape[0], 1), y.dtype)
    return np.concatenate([none, dy] if increasing else [dy, none], axis=1)


differentiable(np.vander, vander_vjp, vander_jvp, saves="y")
RULES[np.vander].run = vander  # type: ignore[attr-defined]

# The same for those who ask for powers, and not for NumPy's bits
POWERS = Function(np.vander, vander_vjp, vander_jvp, saves="y")
POWERS.run = powers

# Arithmetic


def polyder(p: Any, m: int = 1) -> Any:
    if m < 0:
        raise ValueError("np.polyder needs an order of at least 0; see np.polyint")
    p = as_array(p)
    for _ in range(int(m)):
        p = derivative(p)
    return p


def polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    p, m = as_array(p), int(m)
    if m < 0:
        raise ValueError("np.polyint needs an order of at least 0; see np.polyder")
    k = np.zeros(m) if k is None else np.atleast_1d(as_array(k))
    if k.shape[0] == 1 and m > 1:
        k = k * np.ones(m)
    if k.shape[0] < m:
        raise ValueError(f"np.polyint needs one constant or {m}, not {k.shape[0]}")
    for i in range(m):
        p = np.concatenate([p / descending(p.shape[0], p), k[i : i + 1]])
    return p


def lengthened(a1: Any, a2: Any) -> tuple[Any, Any]:
    """Two polynomials with leading zeros to make them of one length."""
    a1, a2 = np.atleast_1d(as_array(a1)), np.atleast_1d(as_array(a2))
    n = max(a1.shape[0], a2.shape[0])
    return _led(a1, n - a1.shape[0]), _led(a2, n - a2.shape[0])


def _led(a: Any, zeros: int) -> Any:
    return np.concatenate([np.zeros(zeros, a.dtype), a]) if zeros else a


def trimmed(a: Any) -> Any:
    """A polynomial without its leading zeros, as NumPy multiplies it."""
    a = np.atleast_1d(as_array(a))
    present = np.flatnonzero(a)
    return a[int(present[0]) :] if present.size else a[-1:]


def polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    u, v = np.atleast_1d(as_array(u)) + 0.0, np.atleast_1d(as_array(v)) + 0.0
    whole = (u[0] + v[0]).dtype
    n, scale = v.shape[0], 1.0 / v[0]
    r, q = as_type(u, whole), []
    for k in range(u.shape[0] - n + 1):
        d = scale * r[k]
        q.append(d)
        r = np.concatenate([r[:k], r[k : k + n] - d * v, r[k + n :]])
    while r.shape[0] > 1 and np.abs(r[0]) <= 1e-8:  # what NumPy takes for zero
        r = r[1:]
    return (as_type(np.stack(q), whole) if q else np.zeros(1, whole)), r


def poly(seq_of_zeros: Any) -> Any:
    zeros = np.atleast_1d(as_array(seq_of_zeros))
    if zeros.ndim == 2 and zeros.shape[0] == zeros.shape[1]:
        zeros = np.linalg.eigvals(zeros)
    if zeros.ndim != 1:
        raise ValueError("np.poly needs the zeros in one row, or a square matrix")
    if not zeros.size:
        return 1.0
    zeros = as_type(zeros, np.mintypecode(zeros.dtype.char))
    one = np.ones(1, zeros.dtype)
    p = one
    for k in range(zeros.shape[0]):
        p = np.convolve(p, np.concatenate([one, -zeros[k : k + 1]]))
    if p.dtype.kind == "c" and np.all(np.sort(zeros) == np.sort(np.conj(zeros))):
        return np.real(p)
    return p


composite(np.polyder, polyder)
composite(np.polyint, polyint)
composite(np.polyadd, lambda a1, a2: np.add(*lengthened(a1, a2)))
composite(np.polysub, lambda a1, a2: np.subtract(*lengthened(a1, a2)))
composite(
    np.polymul,
    lambda a1, a2: np.convolve(trimmed(a1), trimmed(a2)),
    note="0 for leading coefficients that are 0, which NumPy leaves out",
)
composite(np.polydiv, polydiv)
composite(np.poly, poly)

# Fits


def polyfit(
    x: Any, y: Any, deg: int, rcond: Any = None, full: bool = False, w: Any = None,
    cov: Any = False,
) -> Any:  # fmt: skip
    order, x, y = int(deg) + 1, as_array(x) + 0.0, as_array(y) + 0.0
    if order < 1 or x.ndim != 1 or not x.size or y.shape[:1] != x.shape or y.ndim > 2:
        raise TypeError(
            "np.polyfit needs a degree of at least 0, x with one axis and y with one "
            f"or two, the first as long; got {deg}, {x.shape} and {y.shape}"
        )
    rcond = x.size * np.finfo(x.dtype).eps if rcond is None else rcond
    columns = np.vander(x, order)
    if w is not None:
        w = as_array(w) + 0.0
        columns = columns * np.expand_dims(w, 1)
        y = as_type(y * (np.expand_dims(w, 1) if y.ndim == 2 else w), y.dtype)
    scale = np.sqrt(np.sum(columns * columns, axis=0))
    columns = columns / scale
    c, residuals, rank, s = np.linalg.lstsq(columns, y, rcond)
    c = np.transpose(np.transpose(c) / scale)
    if full:
        return c, residuals, rank, s, rcond
    if rank != order:
        warn_user("Polyfit may be poorly conditioned", np.exceptions.RankWarning)
    return (c, _covariance(columns, scale, residuals, cov)) if cov else c


def _covariance(columns: Any, scale: Any, residuals: Any, cov: Any) -> Any:
    base = np.linalg.inv(np.matmul(np.transpose(columns), columns))
    base = base / np.outer(scale, scale)
    if cov == "unscaled":
        return base
    points, order = columns.shape
    if points <= order:
        raise ValueError(
            f"np.polyfit can't scale the covariance of {order} coefficients by the "
            f"residuals of {points} points: give it more, or cov='unscaled'"
        )
    factor = residuals / (points - order)
    return (np.expand_dims(base, 2) if factor.size > 1 else base) * factor


composite(np.polyfit, polyfit)
