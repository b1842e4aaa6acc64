"""What phi is computed with, in the framework of the arrays given."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import numpy as gnp


def number(x: np.ndarray, like: Any) -> Any:
    """Real values in the precision of an array, single at least."""
    dtype = "float64" if gnp.finfo(like).bits == 64 else "float32"
    return gnp.asarray(x, dtype, like=like)


def alike(x: np.ndarray, like: Any) -> Any:
    return gnp.asarray(x, like.dtype, like=like)


def shifted(x: Any, t: Any, vs: Any) -> Any:
    t = gnp.astype(t, x.dtype)
    return x + t[0] * vs[0] + t[1] * vs[1]


def terms(y: Any, scale: float, w: Any, c: float) -> Any:
    is_complex = "complex" in str(y.dtype)
    parts = [gnp.real(y), gnp.imag(y)] if is_complex else [y]
    flat = [gnp.astype(gnp.reshape(part, (-1,)), w.dtype) for part in parts]
    u = gnp.concatenate(flat) / scale
    return w * (u + c * u * u)
