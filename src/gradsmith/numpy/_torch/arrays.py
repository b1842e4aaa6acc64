"""PyTorch's arrays: dtypes, constants, shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import _dtypes
from .._creation import finfo as finfo

_NAMES = (
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "bfloat16", "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
_DTYPES = {name: getattr(torch, name) for name in _NAMES}
_KINDS = {dtype: name for name, dtype in _DTYPES.items()}
_FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)

# torch.compile evaluates these while it traces: they depend on dtypes alone.
constant_of = torch.compiler.assume_constant_result
loop = constant_of(_dtypes.loop)
result_type = constant_of(_dtypes.result_type)


def is_float(x: Any) -> bool:
    return x.dtype in _FLOATS


def are_floats(name: str, x1: Any, x2: Any) -> bool:
    """Whether a kernel takes its operands as they are: 3 us less than by promotion."""
    if type(x2) is float or type(x2) is int:
        return name in _TAKE_NUMBERS and x1.dtype in _FLOATS
    if type(x1) is float or type(x1) is int:
        return False
    dtype = getattr(x1, "dtype", None)
    return dtype in _FLOATS and dtype is getattr(x2, "dtype", None)


_TAKE_NUMBERS = (
    "add", "subtract", "multiply", "divide", "power", "remainder", "equal",
    "not_equal", "less", "less_equal", "greater", "greater_equal",
)  # fmt: skip


def kind(x: Tensor) -> str:
    return _KINDS[x.dtype]


def dtype_of(name: str) -> torch.dtype:
    if name not in _DTYPES:
        raise TypeError(f"PyTorch has no dtype {name}")
    return _DTYPES[name]


def cast(x: Tensor, name: str) -> Tensor:
    dtype = dtype_of(name)
    if x.dtype is dtype:
        return x
    if x.dtype.is_complex and not dtype.is_complex and dtype is not torch.bool:
        x = torch.real(x)
    return x.to(dtype)


def constant(x: Any, name: str, like: Tensor | None) -> Tensor:
    device = None if like is None else like.device
    if isinstance(x, (list, tuple)):
        x = np.asarray(x)
    return torch.as_tensor(x, dtype=dtype_of(name), device=device)


def stop_gradient(x: Tensor) -> Tensor:
    return x.detach()


def ndim(x: Tensor) -> int:
    return x.ndim


def shape(x: Tensor) -> tuple[int, ...]:
    return tuple(x.shape)


def broadcast_shape(shapes: Any) -> tuple[int, ...]:
    return torch.broadcast_shapes(*shapes)


def degrees_of_freedom(x: Tensor, axes: Any, ddof: float) -> float:
    n = 1
    for i in axes:
        n = n * x.shape[i]
    return max(n - ddof, 0)


zeros_like = torch.zeros_like
ones_like = torch.ones_like


def eye(n: int, like: Tensor) -> Tensor:
    return torch.eye(n, dtype=like.dtype, device=like.device)


def arange(start: Any, stop: Any, step: Any, name: str) -> Tensor:
    like = next(x for x in (start, stop, step) if isinstance(x, Tensor))
    return torch.arange(start, stop, step, dtype=dtype_of(name), device=like.device)
