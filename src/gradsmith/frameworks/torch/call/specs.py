"""Tensors as the contract sees them: shape, dtype, and what it takes to make zeros."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch

from ....core.errors import UnsupportedOperationError
from ....core.specs import FrameworkSpec
from ..._dtypes import OtherDtype

_NAMES = (
    "float16 float32 float64 complex64 complex128 bool "
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64"
)
_DTYPES: dict[torch.dtype, Any] = {
    getattr(torch, name): np.dtype(name) for name in _NAMES.split()
}
_DTYPES[torch.bfloat16] = OtherDtype("bfloat16", "f")
_DTYPES[torch.complex32] = OtherDtype("complex32", "c")
for _name in dir(torch):
    if _name.startswith("float8_"):
        _DTYPES[getattr(torch, _name)] = OtherDtype(_name, "f")


class TensorSpec(FrameworkSpec):
    """The spec of a tensor; `dtype` is read as NumPy's only if somebody asks for it."""

    __slots__ = ("device", "name", "native")

    def __init__(self, x: torch.Tensor, name: str = "") -> None:
        self.shape = x.shape
        self.native = x.dtype
        self.device = x.device
        self.name = name  # of a variable

    @property
    def dtype(self) -> Any:  # type: ignore[override]
        return _DTYPES.get(self.native) or OtherDtype(str(self.native), "V")

    def zeros(self) -> torch.Tensor:
        return torch.zeros(self.shape, dtype=self.native, device=self.device)

    def ones(self) -> torch.Tensor:
        return torch.ones(self.shape, dtype=self.native, device=self.device)

    def describes(self, x: Any) -> bool:
        return (
            isinstance(x, torch.Tensor)
            and x.dtype is self.native
            and x.shape == self.shape
        )

    def accepts(self, x: Any) -> Any:
        """A checked gradient or tangent as a tensor of this dtype on this device."""
        if not isinstance(x, torch.Tensor):  # a Python number came back as NumPy's
            return torch.as_tensor(x, dtype=self.native, device=self.device)
        return x if x.dtype is self.native else x.to(self.native)


class AutocastSpec(TensorSpec):
    """The spec of a tensor under autocast, where a rule may compute less precisely."""

    __slots__ = ()

    def describes(self, x: Any) -> bool:
        return (
            isinstance(x, torch.Tensor)
            and x.shape == self.shape
            and x.dtype.is_floating_point
            and self.native.is_floating_point
        )


def native_dtype(spec: Any) -> torch.dtype:
    """The dtype of a spec, which may be NumPy's, as PyTorch's."""
    native = getattr(spec, "native", None)
    return native or getattr(torch, np.dtype(spec.dtype).name)


def is_numpy_dtype(dtype: torch.dtype) -> bool:
    return isinstance(_DTYPES.get(dtype), np.dtype)


def require_supported(tensors: Iterable[torch.Tensor]) -> None:
    """Raise for a tensor that no rule can be given."""
    for x in tensors:
        if x.dtype not in _DTYPES or x.layout is not torch.strided or x.is_nested:
            raise UnsupportedOperationError(_unsupported(x))


def has_gradient(x: Any) -> bool:
    """Whether this is a tensor of numbers that can be varied."""
    return isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex())


def _unsupported(x: torch.Tensor) -> str:
    layout = "nested" if x.is_nested else str(x.layout).removeprefix("torch.")
    return (
        f"operations take dense tensors of numbers, and one is {layout}, {x.dtype}\n"
        "  what to do: convert it first (x.to_dense(), x.dequantize(), "
        "torch.nested.to_padded_tensor), or pass its values as arguments of their own"
    )
