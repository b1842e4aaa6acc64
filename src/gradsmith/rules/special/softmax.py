"""logsumexp, softmax and log_softmax: Python functions of SciPy (see `_scipy_hook`)."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from ..._errors import UnsupportedOperationError
from ..._rule import composite, differentiable, primitive
from ..arithmetic import guard, over
from ..axes import as_array, conj, kept_shape


@primitive
def softmax(x: Any, axis: Any) -> Any:
    return sp.softmax(x, axis)


# y = exp(x)/sum(exp(x)). The Jacobian diag(y) - y y' is symmetric. Lines in which all
# is -inf have no softmax, and no gradient.
def softmax_jvp(dx: Any, y: Any, x: Any, axis: Any) -> Any:
    y = guard(y, y == y)
    return y * (dx - np.sum(dx * y, axis=axis, keepdims=True))


def softmax_vjp(dy: Any, y: Any, x: Any, axis: Any) -> Any:
    return softmax_jvp(dy, conj(y), x, axis)


differentiable(softmax, softmax_vjp, softmax_jvp, saves="y", note="0 if all are -inf")
composite(sp.softmax, lambda x, axis=None: softmax(as_array(x), axis))


@primitive
def log_softmax(x: Any, axis: Any) -> Any:
    return sp.log_softmax(x, axis)


# y = x - log(sum(exp(x))): dx = dy - sum(dy)*exp(y)
def _shares(y: Any) -> tuple[Any, Any]:
    ok = y == y
    return guard(np.exp(guard(y, ok)), ok), ok


def log_softmax_vjp(dy: Any, y: Any, x: Any, axis: Any) -> Any:
    shares, ok = _shares(y)
    dy = guard(dy, ok)
    return dy - conj(shares) * np.sum(dy, axis=axis, keepdims=True)


def log_softmax_jvp(dx: Any, y: Any, x: Any, axis: Any) -> Any:
    shares, ok = _shares(y)
    dx = guard(dx, ok)
    return guard(dx - np.sum(shares * dx, axis=axis, keepdims=True), ok)


differentiable(
    log_softmax, log_softmax_vjp, log_softmax_jvp, saves="y", note="0 if all are -inf"
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
    e = conj(_exponentials(y, a, kept))
    total = np.reshape(np.sum(e, axis=axis), kept)
    return e * over(np.reshape(dy, kept), total)


def logsumexp_jvp(
    da: Any, y: Any, a: Any, axis: Any, keepdims: bool, return_sign: bool
) -> Any:
    first = y[0] if return_sign else y
    e = _exponentials(first, a, kept_shape(a.shape, axis))
    dy = over(np.sum(e * da, axis=axis), np.sum(e, axis=axis))
    dy = np.reshape(dy, first.shape)
    return (dy, np.zeros_like(y[1])) if return_sign else dy


def weighted_vjp(
    dy: Any, y: Any, a: Any, b: Any, axis: Any, keepdims: bool, return_sign: bool
) -> Any:
    dy, y = (dy[0], y[0]) if return_sign else (dy, y)
    kept = kept_shape(np.broadcast_shapes(a.shape, b.shape), axis)
    e, b = conj(_exponentials(y, a, kept)), conj(b)
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
