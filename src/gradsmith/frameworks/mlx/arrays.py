"""MLX's arrays."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import mlx.core as mx
import numpy as np

from .._dtypes import name_of
from .call.specs import ArraySpec

version: str = getattr(mx, "__version__")  # noqa: B009  (its types lack it)
spec = ArraySpec


def array(x: Any, dtype: str | None = None) -> Any:
    if isinstance(x, mx.array):
        return mx.array(x) if dtype is None else x.astype(native_dtype(dtype))
    if dtype is None and hasattr(x, "dtype"):
        dtype = x.dtype  # MLX would make a float32 of NumPy's float64
    return mx.array(x, None if dtype is None else native_dtype(dtype))


def native_dtype(dtype: Any) -> Any:
    """A dtype of NumPy's as MLX's, which has complex numbers of 64 bits alone."""
    name = name_of(dtype)
    return getattr(mx, {"bool": "bool_", "complex128": "complex64"}.get(name, name))


def as_array(x: Any) -> Any:
    return x if isinstance(x, mx.array) else array(np.asarray(x))


def numpy(x: Any) -> np.ndarray:
    return np.array(x.astype(mx.float32) if x.dtype == mx.bfloat16 else x)


def floats(x: Any) -> np.ndarray | None:
    if isinstance(x, mx.array):
        return numpy(x) if mx.issubdtype(x.dtype, mx.inexact) else None
    if isinstance(x, (float, complex, np.ndarray, np.generic)):  # also in callbacks
        x = np.asarray(x)
        return x if x.dtype.kind in "fc" else None
    return None


def dtype_name(x: Any) -> str:
    return name_of(x.dtype).removesuffix("_")


def precision(dtype: str) -> AbstractContextManager[Any]:
    """Its GPUs have no 64 bits."""
    return mx.stream(mx.cpu) if dtype == "float64" else nullcontext()


def stack(arrays: Sequence[Any]) -> Any:
    return mx.stack(list(arrays))
