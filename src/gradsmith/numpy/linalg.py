"""Linear algebra on matrices and stacks of them: NumPy's names in every framework.

Whole numbers are computed in float64, as NumPy does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _elementwise as e
from ._creation import eye
from ._diagonals import diagonal as _diagonal
from ._diagonals import trace as _trace
from ._dispatch import portable
from ._missing import missing as _missing
from ._norms import inexact, matrix_norm, norm, vector_norm
from ._operands import promoted
from ._products import cross, matmul, outer, tensordot, vecdot
from ._shaping import matrix_transpose, squeeze

__all__ = [
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigvalsh",
    "inv",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_transpose",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "svd",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


def __getattr__(name: str) -> Any:
    raise _missing(name, __name__)


def __dir__() -> list[str]:
    return __all__


class Eigh(NamedTuple):
    """What `eigh` returns."""

    eigenvalues: Any
    eigenvectors: Any


class SVD(NamedTuple):
    """What `svd` returns."""

    U: Any
    S: Any
    Vh: Any


class QR(NamedTuple):
    """What `qr` returns."""

    Q: Any
    R: Any


class Slogdet(NamedTuple):
    """What `slogdet` returns."""

    sign: Any
    logabsdet: Any


def _adjoint(x: Any) -> Any:
    return e.conjugate(matrix_transpose(x))


@portable(np.linalg.solve)
def solve(K: Any, A: Any, b: Any, /) -> Any:
    """The x of A x = b; a b with one axis is a vector, else it holds matrices.

    >>> solve(2 * np.eye(2), np.ones(2))
    array([0.5, 0.5])
    """
    A, b = (inexact(K, x) for x in promoted(K, A, b))
    if K.ndim(b) == 1:
        return squeeze(K.solve(A, K.expand_dims(b, 1)), -1)
    return K.solve(A, b)


@portable(np.linalg.inv)
def inv(K: Any, A: Any, /) -> Any:
    """The inverse of each matrix.

    >>> inv(2 * np.eye(2))
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    return K.inv(inexact(K, A))


@portable(np.linalg.det)
def det(K: Any, A: Any, /) -> Any:
    """The determinant of each matrix.

    >>> float(det(2 * np.eye(2)))
    4.0
    """
    return K.det(inexact(K, A))


@portable(np.linalg.slogdet)
def slogdet(K: Any, A: Any, /) -> Any:
    """The sign of each determinant, and the logarithm of its size.

    >>> slogdet(np.eye(2)).logabsdet
    np.float64(0.0)
    """
    return Slogdet(*K.slogdet(inexact(K, A)))


@portable(np.linalg.cholesky)
def cholesky(K: Any, A: Any, /, *, upper: bool = False) -> Any:
    """The triangular L of A = L L*; with `upper` the U of A = U* U.

    Only the triangle of A on that side is read.

    >>> cholesky(4 * np.eye(2))
    array([[2., 0.],
           [0., 2.]])
    """
    A = inexact(K, A)
    if upper:
        return _adjoint(K.cholesky(_adjoint(A)))
    return K.cholesky(A)


@portable(np.linalg.eigh)
def eigh(K: Any, A: Any, /) -> Any:
    """The eigenvalues, ascending, and eigenvectors of Hermitian matrices.

    The signs of the vectors are the framework's. The lower triangle is read.

    >>> eigh(np.eye(2)).eigenvalues
    array([1., 1.])
    """
    return Eigh(*K.eigh(inexact(K, A)))


@portable(np.linalg.eigvalsh)
def eigvalsh(K: Any, A: Any, /) -> Any:
    """The eigenvalues of Hermitian matrices, ascending.

    >>> eigvalsh(np.eye(2))
    array([1., 1.])
    """
    return K.eigvalsh(inexact(K, A))


@portable(np.linalg.svd)
def svd(K: Any, A: Any, /, full_matrices: bool = True) -> Any:
    """U, S and Vh of A = U S Vh, with S descending; the signs are the framework's.

    >>> svd(np.eye(2)).S
    array([1., 1.])
    """
    return SVD(*K.svd(inexact(K, A), full_matrices))


@portable(np.linalg.svdvals)
def svdvals(K: Any, A: Any, /) -> Any:
    """The singular values of each matrix, descending.

    >>> svdvals(np.eye(2))
    array([1., 1.])
    """
    return K.svdvals(inexact(K, A))


@portable(np.linalg.qr)
def qr(K: Any, A: Any, /, mode: str = "reduced") -> Any:
    """Q and R of A = Q R; the mode is "reduced", "complete" or "r" (R alone).

    The signs are the framework's.

    >>> abs(qr(np.eye(2), mode="r"))
    array([[1., 0.],
           [0., 1.]])
    """
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"mode is 'reduced', 'complete' or 'r', not {mode!r}")
    Q, R = K.qr(inexact(K, A), mode == "complete")
    return R if mode == "r" else QR(Q, R)


@portable(np.linalg.pinv)
def pinv(K: Any, A: Any, /, rcond: float = 1e-15) -> Any:
    """The pseudo-inverse; singular values up to rcond times the greatest count as 0.

    >>> pinv(np.array([[2.0]]))
    array([[0.5]])
    """
    return K.pinv(inexact(K, A), rcond)


@portable(np.linalg.matrix_power)
def matrix_power(K: Any, A: Any, n: int, /) -> Any:
    """The product of n times the matrix; of its inverse for a negative n.

    >>> matrix_power(2 * np.eye(2), 3)
    array([[8., 0.],
           [0., 8.]])
    """
    if n == 0:
        return K.broadcast_to(eye(K.shape(A)[-1], dtype=A.dtype, like=A), K.shape(A))
    if n < 0:
        return matrix_power(inv(A), -n)
    half = matrix_power(A, n // 2) if n > 1 else None
    even = A if half is None else K.matmul(half, half)
    return K.matmul(even, A) if n > 1 and n % 2 else even


@portable(np.linalg.diagonal)
def diagonal(K: Any, A: Any, /, *, offset: int = 0) -> Any:
    """A diagonal of the last two axes.

    >>> diagonal(np.eye(2))
    array([1., 1.])
    """
    return _diagonal(A, offset, -2, -1)


@portable(np.linalg.trace)
def trace(K: Any, A: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sum along a diagonal of the last two axes.

    >>> float(trace(np.eye(2)))
    2.0
    """
    return _trace(A, offset, -2, -1, dtype)
