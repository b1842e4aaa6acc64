"""Diagonals and triangles of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..frameworks._dtypes import name_of, total_of
from ._axes import one_axis
from ._dispatch import portable
from ._reductions import sum
from ._shaping import moveaxis


@portable(np.diagonal)
def diagonal(K: Any, x: Any, /, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """A diagonal of two axes, as the last axis.

    >>> diagonal(np.arange(4).reshape(2, 2))
    array([0, 3])
    """
    n = K.ndim(x)
    if one_axis(axis1, n) == one_axis(axis2, n):
        raise ValueError("axis1 and axis2 are two axes")
    return K.diagonal(moveaxis(x, (axis1, axis2), (-2, -1)), offset)


@portable(np.trace)
def trace(
    K: Any,
    x: Any,
    /,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Any = None,
) -> Any:
    """The sum along a diagonal of two axes.

    >>> int(trace(np.arange(4).reshape(2, 2)))
    3
    """
    line = diagonal(x, offset, axis1, axis2)
    return sum(line, -1, total_of(K.kind(x)) if dtype is None else name_of(dtype))


@portable(np.diag)
def diag(K: Any, x: Any, /, k: int = 0) -> Any:
    """The matrix with this diagonal, or the diagonal of this matrix.

    >>> diag(np.array([1, 2]))
    array([[1, 0],
           [0, 2]])
    """
    if K.ndim(x) == 1:
        return K.diag(x, k)
    if K.ndim(x) != 2:
        raise ValueError(f"diag needs one axis or two, not {K.ndim(x)}")
    return K.diagonal(x, k)


def _matrix(K: Any, x: Any) -> Any:
    if K.ndim(x) < 2:
        raise ValueError(f"a triangle has two axes, and this array {K.ndim(x)}")
    return x


@portable(np.tril)
def tril(K: Any, x: Any, /, k: int = 0) -> Any:
    """The matrix with zeros above its k-th diagonal.

    >>> tril(np.ones((2, 2)))
    array([[1., 0.],
           [1., 1.]])
    """
    return K.tril(_matrix(K, x), k)


@portable(np.triu)
def triu(K: Any, x: Any, /, k: int = 0) -> Any:
    """The matrix with zeros below its k-th diagonal.

    >>> triu(np.ones((2, 2)))
    array([[1., 1.],
           [0., 1.]])
    """
    return K.triu(_matrix(K, x), k)
