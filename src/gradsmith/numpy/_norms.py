"""Lengths of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..frameworks._dtypes import inexact_of
from . import _elementwise as e
from ._axes import axes_of
from ._dispatch import portable
from ._operands import operand
from ._reductions import count_nonzero, max, min, root, sum
from ._shaping import reshape


def inexact(K: Any, x: Any) -> Any:
    """An array as linear algebra takes it: whole numbers in float64."""
    x = operand(K, x)
    return K.cast(x, inexact_of(K.kind(x)))


@portable(np.linalg.norm)
def norm(
    K: Any, x: Any, /, ord: Any = None, axis: Any = None, keepdims: bool = False
) -> Any:
    """The length of vectors (one axis) or of matrices (two), by NumPy's `ord`.

    Without `ord` and `axis` it is the length of all elements in a row.

    >>> float(norm(np.array([3.0, 4.0])))
    5.0
    """
    x = inexact(K, x)
    ndim = K.ndim(x)
    axes = axes_of(axis, ndim)
    if axis is None and ord is None:
        return _vector_norm(K, x, 2, axes, keepdims)
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"a vector has no norm {ord!r}: ord is a number")
        return _vector_norm(K, x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(K, x, "fro" if ord is None else ord, axes, keepdims)
    raise ValueError(f"a norm with ord={ord!r} has one axis or two, not {len(axes)}")


@portable(np.linalg.vector_norm)
def vector_norm(
    K: Any, x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2
) -> Any:
    """The length of vectors, along one axis, several or all.

    >>> float(vector_norm(np.array([[3.0, 4.0]])))
    5.0
    """
    x = inexact(K, x)
    return _vector_norm(K, x, ord, axes_of(axis, K.ndim(x)), keepdims)


@portable(np.linalg.matrix_norm)
def matrix_norm(K: Any, x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The length of the matrices in the last two axes.

    >>> float(matrix_norm(np.array([[3.0, 4.0]])))
    5.0
    """
    x = inexact(K, x)
    return _matrix_norm(K, x, ord, axes_of((-2, -1), K.ndim(x)), keepdims)


def _vector_norm(K: Any, x: Any, ord: Any, axes: Any, keepdims: bool) -> Any:
    size = e.absolute(x)
    if ord == 2:
        return root(sum(e.square(size), axes, keepdims=keepdims))
    if ord == np.inf:
        choose = sum if K.is_empty(x) else max  # of no elements it is 0
        return choose(size, axes, keepdims=keepdims)
    if ord == -np.inf:
        return min(size, axes, keepdims=keepdims)
    if ord == 0:
        n = count_nonzero(size, axes, keepdims=keepdims)
        return K.cast(n, K.kind(size))
    if ord == 1:
        return sum(size, axes, keepdims=keepdims)
    total = sum(e.power(size, ord), axes, keepdims=keepdims)
    return root(total, ord) if ord > 0 else e.power(total, 1 / ord)


def _matrix_norm(K: Any, x: Any, ord: Any, axes: Any, keepdims: bool) -> Any:
    if ord == "fro":
        return _vector_norm(K, x, 2, axes, keepdims)
    rows, columns = axes
    if ord in (1, -1, np.inf, -np.inf):
        first = rows if ord in (1, -1) else columns
        second = columns if ord in (1, -1) else rows
        choose = max if ord > 0 else min
        y = choose(sum(e.absolute(x), first, keepdims=True), second, keepdims=True)
    elif ord in (2, -2, "nuc"):
        others = [i for i in range(K.ndim(x)) if i not in axes]
        s = K.svdvals(K.transpose(x, (*others, rows, columns)))
        choose = {2: max, -2: min, "nuc": sum}[ord]
        y = choose(s, -1)
        kept = tuple([1 if i in axes else n for i, n in enumerate(K.shape(x))])
        y = reshape(y, kept)
    else:
        raise ValueError(f"a matrix has no norm {ord!r}")
    return y if keepdims else K.squeeze(y, axes)
