"""JAX's kernels along axes: reductions, order, shapes, indices."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

Axes = tuple[int, ...]


def _reduction(native: Any) -> Any:
    def reduce(x: Array, axes: Axes, keepdims: bool) -> Array:
        return native(x, axis=axes, keepdims=keepdims)

    return reduce


mean, max, min = _reduction(jnp.mean), _reduction(jnp.max), _reduction(jnp.min)
any, all = _reduction(jnp.any), _reduction(jnp.all)
logsumexp = _reduction(jax.scipy.special.logsumexp)
softmax, log_softmax = jax.nn.softmax, jax.nn.log_softmax


def sum(x: Array, axes: Axes, keepdims: bool) -> Array:
    return jnp.sum(x, axis=axes, keepdims=keepdims, dtype=x.dtype)


def prod(x: Array, axes: Axes, keepdims: bool) -> Array:
    return jnp.prod(x, axis=axes, keepdims=keepdims, dtype=x.dtype)


def cumsum(x: Array, axis: int) -> Array:
    return jnp.cumsum(x, axis, dtype=x.dtype)


def cumprod(x: Array, axis: int) -> Array:
    return jnp.cumprod(x, axis, dtype=x.dtype)


argmax, argmin, sort = jnp.argmax, jnp.argmin, jnp.sort


def argsort(x: Array, axis: int) -> Array:
    return jnp.argsort(x, axis, stable=True)


def searchsorted(x1: Array, x2: Array, side: str) -> Array:
    return jnp.searchsorted(x1, x2, side=side)


reshape, transpose, expand_dims = jnp.reshape, jnp.transpose, jnp.expand_dims
squeeze, broadcast_to, flip = jnp.squeeze, jnp.broadcast_to, jnp.flip
roll, tile, repeat = jnp.roll, jnp.tile, jnp.repeat
concat, stack, split = jnp.concatenate, jnp.stack, jnp.split


def unstack(x: Array, axis: int) -> tuple[Array, ...]:
    return jnp.unstack(x, axis=axis)


def unbroadcast(dy: Array, shape: Any) -> Array:
    raise TypeError(f"the lengths {shape} are not whole numbers")


def pad(x: Array, widths: Any, value: Array) -> Array:
    return jnp.pad(x, widths, constant_values=value)


def take(x: Array, indices: Array, axis: int) -> Array:
    return jnp.take(x, indices, axis)


def take_along_axis(x: Array, indices: Array, axis: int) -> Array:
    return jnp.take_along_axis(x, indices, axis)


def diagonal(x: Array, offset: int) -> Array:
    return jnp.diagonal(x, offset, -2, -1)


diag, tril, triu = jnp.diag, jnp.tril, jnp.triu
