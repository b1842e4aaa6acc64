"""JAX's arrays."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...operations.info import is_floating
from .call.specs import describe

version = jax.__version__
spec = describe


def array(x: Any, dtype: str | None = None) -> Any:
    if dtype is None:
        return jnp.asarray(x)
    # NumPy converts, since each shape and dtype would be compiled.
    return jax.device_put(np.array(x, jnp.dtype(dtype)))


def as_array(x: Any) -> Any:
    return x if isinstance(x, jax.Array) else jnp.asarray(x)


def numpy(x: Any) -> np.ndarray:
    return np.array(x, np.float32 if x.dtype == jnp.bfloat16 else None)


def floats(x: Any) -> np.ndarray | None:
    if isinstance(x, (float, complex)):
        return np.asarray(x)
    if not (hasattr(x, "dtype") and is_floating(x)):
        return None
    x = np.asarray(x)
    return x if x.dtype.kind in "fc" else x.astype(np.float32)  # bfloat16


def dtype_name(x: Any) -> str:
    return str(x.dtype)


def precision(dtype: str) -> AbstractContextManager[Any]:
    wide = dtype in ("float64", "complex128")
    return jax.enable_x64(True) if wide else nullcontext()


def stack(arrays: Sequence[Any]) -> Any:
    return jnp.stack(arrays)
