"""logsumexp, softmax and log_softmax: Python functions of SciPy (see `scipy_hook`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from ...core.cotangent import cast
from ...core.errors import UnsupportedOperationError
from ...core.rule import composite, differentiable, primitive
from ..arithmetic import guard, over
from ..axes import as_array, by_lines, conj, kept_shape
from ..wide import is_narrow, widen


@primitive
def softmax(x: Any, axis: Any) -> Any:
    return sp.softmax(x, axis)


# y = exp(x)/sum(exp(x)). The Jacobian diag(y) - y y' is symmetric. Lines in which all
# is -inf have no softmax, and no gradient.
def softmax_jvp(dx: Any, y: Any, x: Any, axis: Any) -> Any:
    if is_narrow(x):
        return by_lines(_softmax_change, axis, dx, x)
    y = guard(y, y == y)
    return y * (dx - np.sum(dx * y, axis=axis, keepdims=True))


def softmax_vjp(dy: Any, y: Any, x: Any, axis: Any) -> Any:
    return softmax_jvp(dy, conj(y), x, axis)


# dx less its mean cancels: where a share is all but 1, to nothing. What belongs to the
# largest share is taken from dx first, in float64; the shares are computed anew. With
# lines of 10, SciPy's softmax takes 8.5 ms for 1e6 elements, the whole of this 7.
def _softmax_change(dx: Any, x: Any) -> Any:
    y, top = _precise_shares(x)
    return y * _less_mean(dx, y, top)


def _precise_shares(x: Any) -> tuple[Any, Any]:
    """The softmax of lines, 0 where there is none, and where their largest are."""
    top = np.argmax(x, -1, keepdims=True)
    e = np.exp(x - np.take_along_axis(x, top, -1))
    total = _total(e)
    ok = total == total  # not so where all are -inf
    return guard(e * (1 / total), ok), top


def _total(x: Any) -> Any:
    """The sums of lines: a product takes a fifth of the time of np.sum."""
    return np.matmul(x, np.ones((x.shape[-1], 1)))


def _less_mean(dx: Any, y: Any, top: Any) -> Any:
    dx = dx - np.take_along_axis(dx, top, -1)
    return dx - _total(dx * y)


differentiable(softmax, softmax_vjp, softmax_jvp, saves="y x", note="0 if all are -inf")
composite(sp.softmax, lambda x, axis=None: softmax(as_array(x), axis))


@primitive
def log_softmax(x: Any, axis: Any) -> Any:
    return sp.log_softmax(x, axis)


# y = x - log(sum(exp(x))): dx = dy - sum(dy)*exp(y)
def _shares(y: Any) -> tuple[Any, Any]:
    ok = y == y
    return guard(np.exp(guard(y, ok)), ok), ok


def log_softmax_vjp(dy: Any, y: Any, x: Any, axis: Any) -> Any:
    if is_narrow(x):
        return by_lines(_log_softmax_pull, axis, dy, x)
    shares, ok = _shares(y)
    dy = guard(dy, ok)
    return dy - conj(shares) * np.sum(dy, axis=axis, keepdims=True)


def log_softmax_jvp(dx: Any, y: Any, x: Any, axis: Any) -> Any:
    if is_narrow(x):
        return by_lines(_log_softmax_push, axis, dx, x)
    shares, ok = _shares(y)
    dx = guard(dx, ok)
    return guard(dx - np.sum(shares * dx, axis=axis, keepdims=True), ok)


# With the largest share s and the others, whose sum is r = 1 - s, what belongs to it is
# r*dy - s*(sum of the other dy); the others are at most 1/2 and do not cancel.
def _log_softmax_pull(dy: Any, x: Any) -> Any:
    y, top = _precise_shares(x)
    s, mine = np.take_along_axis(y, top, -1), np.take_along_axis(dy, top, -1)
    r, others = _total(_with_at(y, top, 0)), _total(_with_at(dy, top, 0))
    dx = _with_at(dy - y * (others + mine), top, r * mine - s * others)
    return guard(dx, s > 0)


def _with_at(x: Any, top: Any, value: Any) -> Any:
    """x with another value at one place of each line."""
    plain = type(x) is type(top) is np.ndarray and type(value) in (int, np.ndarray)
    if not plain:  # one of them is a tensor, under another tape
        return np.where(np.arange(x.shape[-1]) == top, value, x)
    x = x.copy()
    np.put_along_axis(x, top, value, -1)
    return x


def _log_softmax_push(dx: Any, x: Any) -> Any:
    y, top = _precise_shares(x)
    return guard(_less_mean(dx, y, top), np.take_along_axis(y, top, -1) > 0)


differentiable(
    log_softmax, log_softmax_vjp, log_softmax_jvp, saves="y x", note="0 if all are -inf"
)
composite(sp.log_softmax, lambda x, axis=None: log_softmax(as_array(x), axis))


# y = log(sum(b*exp(a))). With e = exp(a - y) the sum of b*e is 1 (or the sign of that
# sum), up to the rounding of y, which is taken out by dividing by it:
#   da = dy*b*e/sum(b*e),  db = dy*e/sum(b*e)
# Where y is infinite there is no gradient. The sign is constant.
@primitive
def logsumexp(a: Any, axis: Any, keepdims: bool, return_sign: bool) -> Any:
    return sp.logsumexp(a, axis, None, keepdims, return_sign)


@primitive
def weighted(a: Any, b: Any, axis: Any, keepdims: bool, return_sign: bool) -> Any:
    return sp.logsumexp(a, axis, b, keepdims, return_sign)


def _exponentials(y: Any, a: Any, kept: tuple[int, ...]) -> Any:
    y = np.reshape(y, kept)
    ok = np.isfinite(y)
    return guard(np.exp(a - guard(y, ok)), ok)


def logsumexp_vjp(
    dy: Any, y: Any, a: Any, axis: Any, keepdims: bool, return_sign: bool
) -> Any:
    dy, y = (dy[0], y[0]) if return_sign else (dy, y)
    kept = kept_shape(a.shape, axis)
    if is_narrow(a):
        dy, y = np.reshape(dy, kept), np.reshape(y, kept)
        return by_lines(_logsumexp_pull, axis, dy, y, a)
    e = conj(_exponentials(y, a, kept))
    total = np.reshape(np.sum(e, axis=axis), kept)
    return e * over(np.reshape(dy, kept), total)


# a - y is rounded in float32, and a difference of -50 makes a share 30 ULP off.
def _logsumexp_pull(dy: Any, y: Any, a: Any) -> Any:
    e = _exponentials(y, a, y.shape)
    return e * over(dy, _total(e))


def logsumexp_jvp(
    da: Any, y: Any, a: Any, axis: Any, keepdims: bool, return_sign: bool
) -> Any:
    first = y[0] if return_sign else y
    e = _exponentials(widen(first), widen(a), kept_shape(a.shape, axis))
    dy = over(np.sum(e * da, axis=axis), np.sum(e, axis=axis))
    dy = cast(np.reshape(dy, first.shape), first.dtype)
    return (dy, np.zeros_like(y[1])) if return_sign else dy


def weighted_vjp(
    dy: Any, y: Any, a: Any, b: Any, axis: Any, keepdims: bool, return_sign: bool
) -> Any:
    dy, y = (dy[0], y[0]) if return_sign else (dy, y)
    kept = kept_shape(np.broadcast_shapes(a.shape, b.shape), axis)
    e, b = conj(_exponentials(widen(y), widen(a), kept)), conj(b)
    terms = guard(b * e, b != 0)
    scale = over(np.reshape(dy, kept), np.reshape(np.sum(terms, axis=axis), kept))
    return terms * scale, e * scale


differentiable(
    logsumexp, logsumexp_vjp, logsumexp_jvp, saves="y a", note="0 if all are -inf"
)
differentiable(
    weighted, weighted_vjp, saves="y a b", arrays=2, note="0 if all are -inf"
)


def logsumexp_of(
    a: Any, axis: Any = None, b: Any = None, keepdims: Any = False,
    return_sign: Any = False,
) -> Any:  # fmt: skip
    a, b = as_array(a), None if b is None else as_array(b)
    if return_sign and (np.iscomplexobj(a) or np.iscomplexobj(b)):
        raise UnsupportedOperationError(
            "scipy.special.logsumexp of complex values is differentiated without "
            "return_sign: their sign is not constant"
        )
    if b is None:
        return logsumexp(a, axis, keepdims, return_sign)
    return weighted(a, b, axis, keepdims, return_sign)


composite(sp.logsumexp, logsumexp_of)
