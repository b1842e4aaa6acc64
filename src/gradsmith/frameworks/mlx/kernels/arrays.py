"""MLX's arrays: dtypes, constants, shapes.

MLX has complex64 alone: what NumPy computes in complex128 is computed in it.
"""

from __future__ import annotations

from typing import Any

import mlx.core as mx
import numpy as np

from ... import _dtypes
from ..._dtypes import finfo as finfo
from ..._kernels import degrees_of_freedom as degrees_of_freedom
from ..._kernels import evaluated as evaluated
from ..._kernels import floats
from ..arrays import native_dtype
from ..call.captured import is_known

FLOATS = (mx.float32, mx.float16, mx.bfloat16, mx.float64)
_KINDS = {dtype: str(dtype).rpartition(".")[2].rstrip("_") for dtype in (
    mx.bool_, mx.uint8, mx.uint16, mx.uint32, mx.uint64, mx.int8, mx.int16, mx.int32,
    mx.int64, mx.complex64, *FLOATS,
)}  # fmt: skip
loop, result_type, fits = _dtypes.loop, _dtypes.result_type, _dtypes.fits
dtype_of = native_dtype


def is_float(x: Any) -> bool:
    return isinstance(x, mx.array) and x.dtype in FLOATS


as_floats = floats(is_float, lambda x, like: mx.array(x, like.dtype))


def kind(x: Any) -> str:
    return _KINDS[x.dtype]


operand_kind = kind


def adopted(x: Any) -> Any:
    return mx.array(x)


def cast(x: Any, name: str) -> Any:
    dtype = dtype_of(name)
    if x.dtype == dtype:
        return x
    if x.dtype == mx.complex64 and dtype != mx.bool_:
        x = mx.real(x)
    return x.astype(dtype)


def constant(x: Any, name: str, like: Any) -> Any:
    if name != "bfloat16":  # NumPy refuses a number that is too large for the dtype
        x = np.asarray(x, np.dtype(name))
    return mx.array(x, dtype_of(name))


stop_gradient = mx.stop_gradient
zeros_like, ones_like = mx.zeros_like, mx.ones_like
broadcast_shape = lambda shapes: mx.broadcast_shapes(*shapes)


def ndim(x: Any) -> int:
    return x.ndim


def shape(x: Any) -> tuple[int, ...]:
    return x.shape


def known_values(x: Any) -> Any:
    """What labels and targets hold; None while they are traced, and of a condition.

    To look at values is to evaluate them, and MLX 0.32 cuts off what was evaluated
    between two derivatives (mx.grad of a function of what mx.vjp gave): the outer one
    is then 0 without a word. A condition comes from what is differentiated.
    """
    if x.dtype in (mx.bool_, mx.bfloat16) or not is_known([x]):
        return None
    return np.array(x)


def is_eager(x: Any) -> bool:
    return False  # it is computed when somebody asks for it


def calls_kernels(x: Any) -> bool:
    return False  # a compiler makes one loop of a loss


def is_unwatched(x: Any) -> bool:
    return False


def is_bool(x: Any) -> bool:
    return isinstance(x, mx.array) and x.dtype == mx.bool_


def is_empty(x: Any) -> bool:
    return x.size == 0


def arange(start: Any, stop: Any, step: Any, name: str, like: Any) -> Any:
    numbers: list[Any] = [
        x.item() if isinstance(x, mx.array) else x for x in (start, stop, step)
    ]
    return mx.arange(*numbers, dtype=dtype_of(name))


def if_any(wanted: Any, then: Any, otherwise: Any) -> Any:
    return then()  # a look at values would stop a compiler
