"""TensorFlow's kernels of linear algebra."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

Tensor = Any
tensordot = tf.tensordot
inv, det = tf.linalg.inv, tf.linalg.det
cholesky = tf.linalg.cholesky


def einsum(subscripts: str, *xs: Tensor) -> Tensor:
    """TensorFlow wants the result's axes named where "..." is broadcast."""
    if "->" not in subscripts:
        letters = subscripts.replace(".", "").replace(",", "")
        once = sorted(each for each in letters if letters.count(each) == 1)
        dots = "..." if "..." in subscripts else ""
        subscripts += "->" + dots + "".join(once)
    return tf.einsum(subscripts, *xs)


def _real(x: Tensor) -> Tensor:
    """What is real, of a result that TensorFlow calls complex."""
    return tf.math.real(x) if x.dtype.is_complex else x


def slogdet(x: Tensor) -> Any:
    sign, size = tf.linalg.slogdet(x)
    return sign, _real(size)


def eigh(x: Tensor) -> Any:
    values, vectors = tf.linalg.eigh(x)
    return _real(values), vectors


def eigvalsh(x: Tensor) -> Tensor:
    return _real(tf.linalg.eigvalsh(x))


def matmul(x1: Tensor, x2: Tensor) -> Tensor:
    """A vector is a row on the left, a column on the right."""
    row, column = x1.shape.rank == 1, x2.shape.rank == 1
    x1 = x1[None, :] if row else x1
    x2 = x2[:, None] if column else x2
    y = tf.matmul(x1, x2)
    y = tf.squeeze(y, -1) if column else y
    return tf.squeeze(y, -1 if column else -2) if row else y


def solve(A: Tensor, b: Tensor) -> Tensor:
    stacks = tf.broadcast_dynamic_shape(tf.shape(A)[:-2], tf.shape(b)[:-2])
    A = tf.broadcast_to(A, tf.concat([stacks, tf.shape(A)[-2:]], 0))
    b = tf.broadcast_to(b, tf.concat([stacks, tf.shape(b)[-2:]], 0))
    return tf.linalg.solve(A, b)


def svd(x: Tensor, full_matrices: bool) -> Any:
    s, u, v = tf.linalg.svd(x, full_matrices)
    return u, s, tf.linalg.adjoint(v)


def svdvals(x: Tensor) -> Tensor:
    return tf.linalg.svd(x, full_matrices=False)[0]


def qr(x: Tensor, complete: bool) -> Any:
    return tf.linalg.qr(x, complete)


def pinv(x: Tensor, rcond: float) -> Tensor:
    return tf.linalg.pinv(x, rcond)
