"""MLX's arrays as the contract sees them: shape, dtype, and what counts as one."""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from ....core.specs import FrameworkSpec
from ..._dtypes import OtherDtype
from ..._outputs import refuse_numpy

_NAMES = (
    "float16 float32 float64 complex64 "
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64"
)
_DTYPES: dict[Any, Any] = {getattr(mx, name): np.dtype(name) for name in _NAMES.split()}
_DTYPES[mx.bool_] = np.dtype(bool)
_DTYPES[mx.bfloat16] = OtherDtype("bfloat16", "f")


class ArraySpec(FrameworkSpec):
    """The spec of an array."""

    __slots__ = ("native",)

    def __init__(self, x: Any) -> None:
        self.shape = x.shape
        self.native = x.dtype
        self.dtype = _DTYPES[x.dtype]

    def zeros(self) -> Any:
        return mx.zeros(self.shape, self.native)

    def ones(self) -> Any:
        return mx.ones(self.shape, self.native)

    def describes(self, x: Any) -> bool:
        return (
            isinstance(x, mx.array) and x.dtype == self.native and x.shape == self.shape
        )

    def accepts(self, x: Any) -> Any:
        """A checked gradient or tangent as an array of this dtype."""
        return x if isinstance(x, mx.array) else mx.array(x, self.native)


def has_gradient(x: Any) -> bool:
    """Whether this is an array of numbers that can be varied."""
    return mx.issubdtype(x.dtype, mx.inexact)


def as_output(y: Any, name: str) -> Any:
    """An output as it is given back; None if it is no number with a gradient."""
    if isinstance(y, mx.array):
        return y
    if isinstance(y, (float, complex)):
        return mx.array(y)
    refuse_numpy(y, name, "MLX")
    return None
