"""Products and sums of products."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _elementwise as e
from ._axes import axes_of, one_axis
from ._dispatch import portable
from ._operands import promoted
from ._reductions import sum
from ._repeating import roll


@portable(np.matmul)
def matmul(K: Any, x1: Any, x2: Any, /) -> Any:
    """The product of matrices, or of stacks of them; a vector has one axis.

    >>> matmul(np.ones((2, 3)), np.ones(3))
    array([3., 3.])
    """
    x1, x2 = promoted(K, x1, x2)
    if not K.ndim(x1) or not K.ndim(x2):
        raise ValueError("matmul needs matrices or vectors; use multiply for numbers")
    return K.matmul(x1, x2)


@portable(np.dot)
def dot(K: Any, x1: Any, x2: Any, /) -> Any:
    """The sum over the last axis of x1 and the second to last of x2.

    >>> float(dot(np.ones(3), np.ones(3)))
    3.0
    """
    x1, x2 = promoted(K, x1, x2)
    if not K.ndim(x1) or not K.ndim(x2):
        return e.multiply(x1, x2)
    if K.ndim(x1) <= 2 and K.ndim(x2) <= 2:
        return K.matmul(x1, x2)
    last = K.ndim(x2) - 1
    return K.tensordot(x1, x2, ((K.ndim(x1) - 1,), (last and last - 1,)))


@portable(np.tensordot)
def tensordot(K: Any, x1: Any, x2: Any, /, axes: Any = 2) -> Any:
    """The sum over pairs of axes: the last so many of x1, or two lists of axes.

    >>> tensordot(np.ones((2, 3)), np.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    x1, x2 = promoted(K, x1, x2)
    n1, n2 = K.ndim(x1), K.ndim(x2)
    if isinstance(axes, int):
        pairs = tuple(range(n1 - axes, n1)), tuple(range(axes))
    else:
        pairs = axes_of(axes[0], n1), axes_of(axes[1], n2)
    return K.tensordot(x1, x2, pairs)


@portable(np.inner)
def inner(K: Any, x1: Any, x2: Any, /) -> Any:
    """The sum over the last axes of both.

    >>> float(inner(np.ones(3), np.ones(3)))
    3.0
    """
    x1, x2 = promoted(K, x1, x2)
    if not K.ndim(x1) or not K.ndim(x2):
        return e.multiply(x1, x2)
    return K.tensordot(x1, x2, ((K.ndim(x1) - 1,), (K.ndim(x2) - 1,)))


@portable(np.outer)
def outer(K: Any, x1: Any, x2: Any, /) -> Any:
    """Each element of x1 times each of x2.

    >>> outer(np.array([1, 2]), np.array([3, 4]))
    array([[3, 4],
           [6, 8]])
    """
    x1, x2 = promoted(K, x1, x2)
    return e.multiply(K.reshape(x1, (-1, 1)), K.reshape(x2, (1, -1)))


@portable(np.vecdot)
def vecdot(K: Any, x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The sum of conj(x1) * x2 along an axis.

    >>> vecdot(np.ones((2, 3)), np.ones(3))
    array([3., 3.])
    """
    x1, x2 = promoted(K, x1, x2)
    n1, n2 = (K.shape(x)[one_axis(axis, K.ndim(x))] for x in (x1, x2))
    if isinstance(n1, int) and isinstance(n2, int) and n1 != n2:
        raise ValueError(f"vecdot needs vectors of one length, not {n1} and {n2}")
    return sum(e.multiply(e.conjugate(x1), x2), axis, dtype=K.kind(x1))


@portable(np.kron)
def kron(K: Any, x1: Any, x2: Any, /) -> Any:
    """Blocks: x2 times each element of x1.

    >>> kron(np.array([1, 2]), np.array([1, 1]))
    array([1, 1, 2, 2])
    """
    x1, x2 = promoted(K, x1, x2)
    n = K.ndim(x1) if K.ndim(x1) > K.ndim(x2) else K.ndim(x2)
    s1 = (1,) * (n - K.ndim(x1)) + K.shape(x1)
    s2 = (1,) * (n - K.ndim(x2)) + K.shape(x2)
    x1 = K.reshape(x1, tuple([k for s in s1 for k in (s, 1)]))
    x2 = K.reshape(x2, tuple([k for s in s2 for k in (1, s)]))
    blocks = tuple([a * b for a, b in zip(s1, s2, strict=True)])
    return K.reshape(e.multiply(x1, x2), blocks)


def _cross(x1: Any, x2: Any, *, axis: int = -1) -> Any:
    return np.cross(x1, x2, axis=axis)


@portable(_cross)
def cross(K: Any, x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The vector product of vectors of length 3 along an axis.

    >>> cross(np.array([1, 0, 0]), np.array([0, 1, 0]))
    array([0, 0, 1])
    """
    x1, x2 = promoted(K, x1, x2)
    for x in (x1, x2):
        n = K.shape(x)[one_axis(axis, K.ndim(x))]
        if isinstance(n, int) and n != 3:
            raise ValueError("cross needs vectors of length 3")
    ahead = e.multiply(roll(x1, -1, axis), roll(x2, -2, axis))
    return e.subtract(ahead, e.multiply(roll(x1, -2, axis), roll(x2, -1, axis)))


@portable(np.einsum)
def einsum(K: Any, subscripts: str, /, *operands: Any) -> Any:
    """Einstein's sum convention; the subscripts are a string.

    >>> einsum("ij,j->i", np.ones((2, 3)), np.ones(3))
    array([3., 3.])
    """
    if not isinstance(subscripts, str):
        raise TypeError("gnp.einsum needs its subscripts as a string: 'ij,jk->ik'")
    return K.einsum(subscripts.replace(" ", ""), *promoted(K, *operands))
