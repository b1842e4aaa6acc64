"""JAX's kernels: native calls whose dtypes and axes are settled.

Without JAX's 64-bit mode (`jax_enable_x64`) a 64-bit dtype is what JAX makes of it, the
32-bit one; so NumPy's dtype is asked for, and JAX's is what comes.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from ...operations import fusing
from .. import _dtypes
from .._dtypes import finfo as finfo
from .._kernels import degrees_of_freedom as degrees_of_freedom
from .._kernels import evaluated as evaluated
from .._kernels import floats
from .private import varying_axes

_FLOATS = tuple(map(jnp.dtype, (jnp.float32, jnp.float64, jnp.bfloat16, jnp.float16)))
_PYTHON = {"i": int, "u": int, "f": float, "c": complex}
loop, result_type, fits = _dtypes.loop, _dtypes.result_type, _dtypes.fits


def is_float(x: Any) -> bool:
    dtype = getattr(x, "dtype", None)
    return dtype is not None and dtype in _FLOATS  # NumPy's float64 equals None


as_floats = floats(is_float, lambda x, like: x)


def kind(x: Any) -> str:
    return x.dtype.name


def operand_kind(x: Any) -> Any:
    """The kind in promotion: a Python number that jit made an array of still is one."""
    if getattr(x, "weak_type", False):
        return _PYTHON.get(x.dtype.kind, "bool")
    return x.dtype.name


def dtype_of(name: str) -> Any:
    return jax.dtypes.canonicalize_dtype(jnp.bfloat16 if name == "bfloat16" else name)


def adopted(x: Any) -> Array:
    """An array of what becomes one."""
    return x.__jax_array__()


def cast(x: Array, name: str) -> Array:
    dtype = dtype_of(name)
    if x.dtype == dtype:
        return x
    if x.dtype.kind == "c" and dtype.kind in "iuf":
        x = jnp.real(x)
    return x.astype(dtype)


def constant(x: Any, name: str, like: Any) -> Array:
    # NumPy refuses a number that is too large for the dtype; JAX would wrap it.
    return jnp.asarray(np.asarray(x, np.dtype(name)), dtype=dtype_of(name))


stop_gradient = jax.lax.stop_gradient
ndim, shape = jnp.ndim, jnp.shape
zeros_like, ones_like = jnp.zeros_like, jnp.ones_like


def known_values(x: Any) -> Any:
    """What an array holds, if it is there to be read; None while it is traced."""
    return np.asarray(x) if is_eager(x) else None


def is_eager(x: Any) -> bool:
    return not isinstance(x, Tracer)


def calls_kernels(x: Any) -> bool:
    """XLA makes several loops of a loss and its gradient, also on a CPU.

    huber of 128 x 1024 takes 93 us there, and 29 as a kernel.
    """
    is_there = jax.default_backend() == "cpu" and fusing.runs_on_cpu()
    if not is_there or not fusing.is_on():
        return False
    is_known = {*map(type, x.shape)} <= {int}
    return is_known and x.size >= fusing.SMALL


def is_unwatched(x: Any) -> bool:
    return False  # checkify, jax_debug_nans


def is_bool(x: Any) -> bool:
    dtype = getattr(x, "dtype", None)
    return dtype is not None and dtype == np.bool_


def is_empty(x: Array) -> bool:
    return x.size == 0


def broadcast_shape(shapes: Any) -> tuple[Any, ...]:
    return jnp.broadcast_shapes(*shapes)


def arange(start: Any, stop: Any, step: Any, name: str, like: Any) -> Array:
    return jnp.arange(start, stop, step, dtype=dtype_of(name))


def if_any(wanted: Array, then: Any, otherwise: Any) -> Any:
    axes = varying_axes(jax.typeof(wanted))

    def varied(x: Any) -> Any:
        return jax.lax.pcast(x, (*(axes - varying_axes(jax.typeof(x))),), to="varying")

    if axes:  # in shard_map; `cond` takes no constant beside what varies
        first, second = then, otherwise
        then = lambda: jax.tree.map(varied, first())
        otherwise = lambda: jax.tree.map(varied, second())
    return jax.lax.cond(jnp.any(wanted), then, otherwise)


# --- along axes: reductions, order, shapes, indices


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


def count(x: Array, axes: Axes, keepdims: bool) -> Array:
    return sum(cast(x, "int64"), axes, keepdims)


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


# --- elementwise: its names are NumPy's


COMPARES_NUMBERS = False
ELEMENTWISE: dict[str, Any] = {
    name: getattr(jnp, name)
    for name in dir(np)
    if isinstance(getattr(np, name), np.ufunc) and hasattr(jnp, name)
}

SPECIAL: dict[str, Any] = {
    "erf": jax.scipy.special.erf,
    "erfc": jax.scipy.special.erfc,
    "erfinv": jax.scipy.special.erfinv,
    "gammaln": jax.scipy.special.gammaln,
    "digamma": jax.scipy.special.digamma,
    "ndtr": jax.scipy.special.ndtr,
    "ndtri": jax.scipy.special.ndtri,
    "log_ndtr": jax.scipy.special.log_ndtr,
    "expit": jax.nn.sigmoid,
    "log_expit": jax.nn.log_sigmoid,
    "logit": jax.scipy.special.logit,
}


def clip(x: Any, low: Any, high: Any) -> Any:
    """At a bound the derivative is x's; JAX's own halves it there."""
    if low is not None:
        x = jnp.where((x < low) | jnp.isnan(low), low, x)
    if high is not None:
        x = jnp.where((x > high) | jnp.isnan(high), high, x)
    return x


where, real, imag, complex = jnp.where, jnp.real, jnp.imag, jax.lax.complex


# --- linear algebra


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
