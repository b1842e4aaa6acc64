"""Matrices that are arrays: one factorisation, which knows when it has failed."""

from __future__ import annotations

from typing import Any

import gradsmith.numpy as gnp

from ...core.arrays import framework_of
from ...operations.portable import stop_gradient
from .parts import compiled_of
from .sizes import finite, precision
from .solvers import SINGULAR, factorised

_ROUNDING = 1e4  # units of it, for matrices of any size


def dense_solve(a: Any, b: Any) -> Any:
    """x with a x = b; b is a vector if it has one axis, else a stack of matrices."""
    if framework_of(b) is None:
        b = gnp.asarray(b, like=a)
    if gnp.ndim(b) == 1:
        return dense_solve(a, b[:, None])[..., 0]
    # With as many axes as the matrix, b is a matrix to every framework
    more = gnp.ndim(a) - gnp.ndim(b)
    b = b[(None,) * more] if more > 0 else b
    x = factorised(a, b)
    if a.shape[-1] == 0:
        return x
    holds = _is_solved(*map(stop_gradient, (x, a, b)))
    return compiled_of(a, b).insist(x, holds, SINGULAR)


def _is_solved(x: Any, a: Any, b: Any) -> Any:
    """If rounding explains the residual, or there was no number to begin with.

    Some frameworks raise where a matrix is singular; some divide by zero, or by what
    rounding has left: then b is nowhere near a x.
    """
    terms = a * gnp.sum(x, axis=-1)[..., None, :]  # of all columns at once
    off = gnp.abs(gnp.sum(terms, axis=-1) - gnp.sum(b, axis=-1))
    large = gnp.abs(a) * gnp.sum(gnp.abs(x), axis=-1)[..., None, :]
    right = _most(gnp.sum(gnp.abs(b), axis=-1))
    rounding = _ROUNDING * precision(x) * _most(gnp.sum(large, axis=-1))
    few = _ROUNDING * precision(x) * right
    fits = gnp.all(off <= few + gnp.minimum(rounding, 0.01 * right))
    numbers = [gnp.all(finite(v)) for v in (x, a, b)]
    return (fits & numbers[0]) | ~(numbers[1] & numbers[2])


def _most(rows: Any) -> Any:
    return gnp.max(rows, axis=-1, keepdims=True)
