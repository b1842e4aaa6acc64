"""PyTorch's arrays: dtypes, constants, shapes."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....core.import_hooks import once_imported
from ... import _dtypes
from ..._dtypes import finfo as finfo
from ..._kernels import degrees_of_freedom as degrees_of_freedom
from ..private import has_forward_level, is_exporting, is_transformed

_NAMES = (
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "bfloat16", "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
_DTYPES = {name: getattr(torch, name) for name in _NAMES}
_KINDS = {dtype: name for name, dtype in _DTYPES.items()}
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


def evaluated(fn: Any, *args: Any) -> Any:
    """A function of Python values, which torch.compile calls and does not trace."""
    return fn(*args)


def loop(*kinds: Any) -> tuple[str, ...]:
    return _dtypes.loop(*kinds)


def result_type(*kinds: Any) -> str:
    return _dtypes.result_type(*kinds)


def fits(number: int, name: str) -> bool:
    """A length that torch.compile leaves open is taken to fit, without a guard."""
    if torch.compiler.is_compiling() and name in ("int32", "int64"):
        return True
    return _dtypes.fits(number, name)


def _take_for_constants(dynamo: Any) -> None:
    for fn in (evaluated, loop, result_type):
        torch.compiler.assume_constant_result(fn)


once_imported("torch._dynamo", _take_for_constants)


def is_float(x: Any) -> bool:
    return getattr(x, "dtype", None) in FLOATS


def as_floats(name: str, x1: Any, x2: Any) -> tuple[Any, Any] | None:
    """Operands of one floating dtype as a kernel takes them: 4 us less than promotion.

    None if they are others.
    """
    if type(x2) is float or type(x2) is int:
        if not is_float(x1):
            return None
        if name not in _TAKE_NUMBERS:
            x2 = torch.full((), x2, dtype=x1.dtype, device=x1.device)
        return x1, x2
    if type(x1) is float or type(x1) is int:
        if not is_float(x2):
            return None
        if name != "where":
            x1 = torch.full((), x1, dtype=x2.dtype, device=x2.device)
        return x1, x2
    dtype = getattr(x1, "dtype", None)
    if dtype in FLOATS and dtype is getattr(x2, "dtype", None):
        return x1, x2
    return None


_TAKE_NUMBERS = (
    "add", "subtract", "multiply", "divide", "power", "remainder", "equal",
    "not_equal", "less", "less_equal", "greater", "greater_equal", "where",
)  # fmt: skip


def kind(x: Tensor) -> str:
    return _KINDS[x.dtype]


operand_kind = kind


def dtype_of(name: str) -> torch.dtype:
    if name not in _DTYPES:
        raise TypeError(f"PyTorch has no dtype {name}")
    return _DTYPES[name]


def adopted(x: Any) -> Tensor:
    return torch.as_tensor(x)


def cast(x: Tensor, name: str) -> Tensor:
    dtype = dtype_of(name)
    if x.dtype is dtype:
        return x
    if x.dtype.is_complex and not dtype.is_complex and dtype is not torch.bool:
        x = torch.real(x)
    return x.to(dtype)


def constant(x: Any, name: str, like: Tensor | None) -> Tensor:
    if isinstance(x, np.generic):
        x = x.item()  # PyTorch makes no whole number of np.True_
    if type(x) is int and not fits(x, name):
        raise OverflowError(f"Python integer {x} out of bounds for {name}")
    device = None if like is None else like.device
    on_gpu = device is not None and device.type == "cuda"
    # A copy from the CPU waits until the GPU has done all that is queued. But `full`
    # raises where a number is too large for float32, and not infinite.
    if on_gpu and isinstance(x, (int, float)) and not 2.0**127 <= abs(x) < inf:
        return torch.full((), x, dtype=dtype_of(name), device=device)
    return torch.as_tensor(x, dtype=dtype_of(name), device=device)


def stop_gradient(x: Tensor) -> Tensor:
    return x.detach()


def ndim(x: Tensor) -> int:
    return x.ndim


def shape(x: Tensor) -> tuple[int, ...]:
    return tuple(x.shape)


def known_values(x: Tensor) -> Any:
    """What a tensor holds, if it is there to be read and that costs nothing."""
    if not (x.is_cpu and is_eager(x)):
        return None
    return x.detach().numpy() if x.dtype is not torch.bfloat16 else None


def is_eager(x: Tensor) -> bool:
    if torch.compiler.is_compiling() or type(x) is not Tensor:
        return False
    tracing: Any = torch.jit
    # Else it may be a level's, or an example
    return not (is_transformed() or tracing.is_tracing())


def calls_kernels(x: Tensor) -> bool:
    """Whether a compiler calls kernels that add up a loss."""
    return torch.compiler.is_compiling() and x.is_cuda


def is_unwatched(x: Tensor) -> bool:
    return torch.compiler.is_compiling()  # anomaly mode looks at gradients alone


def leaves_out_unused(x: Tensor) -> bool:
    # Dynamo keeps no rule in an export of its own, nor at a level of forward mode
    return (
        torch.compiler.is_compiling() and not is_exporting() and not has_forward_level()
    )


def is_bool(x: Any) -> bool:
    return getattr(x, "dtype", None) is torch.bool


def is_empty(x: Tensor) -> bool:
    return x.numel() == 0


def broadcast_shape(shapes: Any) -> tuple[int, ...]:
    return torch.broadcast_shapes(*shapes)


zeros_like = torch.zeros_like
ones_like = torch.ones_like


def arange(start: Any, stop: Any, step: Any, name: str, like: Any) -> Tensor:
    return torch.arange(start, stop, step, dtype=dtype_of(name), device=like.device)


def if_any(wanted: Tensor, then: Any, otherwise: Any) -> Any:
    return then()  # a look at values would stop a compiler, and wait for a GPU
