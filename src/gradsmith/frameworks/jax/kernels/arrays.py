"""JAX's arrays: dtypes, constants, shapes.

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

from ... import _dtypes
from ..._dtypes import finfo as finfo

_FLOATS = tuple(map(jnp.dtype, (jnp.float32, jnp.float64, jnp.bfloat16, jnp.float16)))
_PYTHON = {"i": int, "u": int, "f": float, "c": complex}
loop, result_type, fits = _dtypes.loop, _dtypes.result_type, _dtypes.fits


def evaluated(fn: Any, *args: Any) -> Any:
    return fn(*args)


def is_float(x: Any) -> bool:
    dtype = getattr(x, "dtype", None)
    return dtype is not None and dtype in _FLOATS  # NumPy's float64 equals None


def as_floats(name: str, x1: Any, x2: Any) -> tuple[Any, Any] | None:
    """Operands of one floating dtype as a kernel takes them; None for others."""
    if type(x2) is float or type(x2) is int:
        return (x1, x2) if is_float(x1) else None
    if type(x1) is float or type(x1) is int:
        return (x1, x2) if is_float(x2) else None
    if is_float(x1) and is_float(x2) and x1.dtype == x2.dtype:
        return x1, x2
    return None


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
    return None if isinstance(x, Tracer) else np.asarray(x)


def is_bool(x: Any) -> bool:
    dtype = getattr(x, "dtype", None)
    return dtype is not None and dtype == np.bool_


def is_empty(x: Array) -> bool:
    return x.size == 0


def broadcast_shape(shapes: Any) -> tuple[Any, ...]:
    return jnp.broadcast_shapes(*shapes)


def degrees_of_freedom(x: Array, axes: Any, ddof: float) -> float:
    n = 1
    for i in axes:
        n = n * x.shape[i]
    return max(n - ddof, 0)


def arange(start: Any, stop: Any, step: Any, name: str, like: Any) -> Array:
    return jnp.arange(start, stop, step, dtype=dtype_of(name))


def if_any(wanted: Array, then: Any, otherwise: Any) -> Any:
    return jax.lax.cond(jnp.any(wanted), then, otherwise)
