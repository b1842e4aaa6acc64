"""JAX's kernels of linear algebra."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

matmul, einsum = jnp.matmul, jnp.einsum
solve, inv, det = jnp.linalg.solve, jnp.linalg.inv, jnp.linalg.det
slogdet, eigvalsh, svdvals = jnp.linalg.slogdet, jnp.linalg.eigvalsh, jnp.linalg.svdvals


def tensordot(x1: Array, x2: Array, axes: Any) -> Array:
    return jnp.tensordot(x1, x2, axes=axes)


def cholesky(x: Array) -> Array:
    return jnp.linalg.cholesky(x, symmetrize_input=False)


def eigh(x: Array) -> Any:
    return jnp.linalg.eigh(x, symmetrize_input=False)


def svd(x: Array, full_matrices: bool) -> Any:
    return jnp.linalg.svd(x, full_matrices=full_matrices)


def qr(x: Array, complete: bool) -> Any:
    return jnp.linalg.qr(x, mode="complete" if complete else "reduced")


def pinv(x: Array, rcond: float) -> Array:
    return jnp.linalg.pinv(x, rtol=rcond)
