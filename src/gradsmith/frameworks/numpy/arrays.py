"""NumPy's arrays, and the engine's tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.cotangent import Scattered, Spec
from ...core.tape import Traced
from ...core.tensor import unwrap

version = np.__version__
numbers_differentiable = True


def array(x: Any, dtype: str | None = None) -> np.ndarray:
    return np.array(unwrap(x), dtype)


def as_array(x: Any) -> Any:
    return x if isinstance(x, Traced) else np.asarray(x)


def numpy(x: Any) -> np.ndarray:
    return np.array(unwrap(x))


def floats(x: Any) -> np.ndarray | None:
    x = x.dense() if isinstance(x, Scattered) else unwrap(x)
    if not isinstance(x, (np.ndarray, np.generic, float, complex)):
        return None
    x = np.asarray(x)
    return x if x.dtype.kind in "fc" else None


def spec(x: Any) -> Spec:
    return Spec(tuple(x.shape), x.dtype)


def dtype_name(x: Any) -> str:
    return str(getattr(x, "dtype", "float64"))


def stack(arrays: Sequence[Any]) -> Any:
    return np.stack(arrays)


# --- how arrays lie in memory --------------------------------------------------------


def _transposed(x: np.ndarray) -> np.ndarray:
    return np.array(x, order="F")


def _sliced(x: np.ndarray) -> np.ndarray:
    return np.stack([x, np.zeros_like(x)], -1)[..., 0]


def repeated(x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x.flat[0], x.shape) if x.size else x


LAYOUTS = {"transposed": _transposed, "sliced": _sliced}
