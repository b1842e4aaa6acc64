"""TensorFlow's arrays: dtypes, constants, shapes that a graph may leave open."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from ... import _dtypes
from ..._dtypes import finfo as finfo
from ..._kernels import evaluated as evaluated
from ..._kernels import floats

_NAMES = (
    "bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
    "bfloat16", "float16", "float32", "float64", "complex64", "complex128",
)  # fmt: skip
_DTYPES = {name: tf.as_dtype(name) for name in _NAMES}
_FLOATS = (tf.float32, tf.float64, tf.bfloat16, tf.float16)
loop, result_type, fits = _dtypes.loop, _dtypes.result_type, _dtypes.fits


def is_float(x: Any) -> bool:
    dtype = getattr(x, "dtype", None)
    return isinstance(dtype, tf.DType) and dtype in _FLOATS  # NumPy's are equal to them


as_floats = floats(is_float, lambda x, like: tf.constant(x, like.dtype))


def kind(x: Any) -> str:
    return x.dtype.name


operand_kind = kind


def dtype_of(name: str) -> tf.DType:
    if name not in _DTYPES:
        raise TypeError(f"TensorFlow has no dtype {name}")
    return _DTYPES[name]


def adopted(x: Any) -> tf.Tensor:
    """A tensor of what becomes one."""
    return tf.convert_to_tensor(x)


def cast(x: Any, name: str) -> tf.Tensor:
    x = tf.convert_to_tensor(x)
    dtype = dtype_of(name)
    if x.dtype == dtype:
        return x
    if x.dtype.is_complex and not dtype.is_complex and dtype != tf.bool:
        x = tf.math.real(x)
    return tf.cast(x, dtype)


def constant(x: Any, name: str, like: Any) -> tf.Tensor:
    dtype = dtype_of(name)
    if isinstance(x, (bool, int, float, complex)) and name != "bfloat16":
        return tf.constant(np.dtype(name).type(x), dtype)
    return tf.cast(tf.constant(np.asarray(x)), dtype)


stop_gradient = tf.stop_gradient


def _static(x: Any) -> list[int | None]:
    """The lengths that the graph knows."""
    known = x.shape
    if known.rank is None:
        raise ValueError(
            "the graph doesn't know how many axes this tensor has: set it with "
            "tf.ensure_shape(x, [None, None])"
        )
    return known.as_list()


def ndim(x: Any) -> int:
    return len(_static(x))


def shape(x: Any) -> tuple[Any, ...]:
    """The lengths: whole numbers where the graph knows them, else scalar tensors."""
    known = _static(x)
    if None not in known:
        return tuple(known)
    lengths = tf.shape(x)
    return tuple(lengths[i] if n is None else n for i, n in enumerate(known))


def is_known(shape: Any) -> bool:
    return all(isinstance(n, int) for n in shape)


def known_values(x: Any) -> Any:
    """What a tensor holds, if it is there to be read; None in a graph."""
    return x.numpy() if is_eager(x) else None


def is_eager(x: Any) -> bool:
    return tf.executing_eagerly() and hasattr(x, "numpy")


def calls_kernels(x: Any) -> bool:
    return False  # a compiler makes one loop of a loss


def is_unwatched(x: Any) -> bool:
    return False  # tf.debugging.enable_check_numerics


def is_bool(x: Any) -> bool:
    return getattr(x, "dtype", None) == tf.bool


def is_empty(x: Any) -> bool:
    """Whether the graph knows that there is no element."""
    return x.shape.num_elements() == 0


def broadcast_shape(shapes: Any) -> Any:
    if all(map(is_known, shapes)):
        return np.broadcast_shapes(*shapes)
    total = lengths_of(shapes[0])
    for each in shapes[1:]:
        total = tf.broadcast_dynamic_shape(total, lengths_of(each))
    return (total,)


def lengths_of(shape: Any) -> tf.Tensor:
    """A shape as one tensor."""
    if len(shape) == 1 and tf.is_tensor(shape[0]) and shape[0].shape.rank == 1:
        return shape[0]  # it was one
    return tf.convert_to_tensor([tf.cast(n, tf.int32) for n in shape] or [], tf.int32)


def degrees_of_freedom(x: Any, axes: Any, ddof: float) -> Any:
    lengths = [shape(x)[i] for i in axes]
    if is_known(lengths):
        return max(int(np.prod(lengths)) - ddof, 0)
    real = x.dtype.real_dtype
    n = tf.reduce_prod([tf.cast(each, real) for each in lengths])
    return tf.maximum(n - ddof, 0)


zeros_like, ones_like = tf.zeros_like, tf.ones_like


def arange(start: Any, stop: Any, step: Any, name: str, like: Any) -> tf.Tensor:
    """By way of 32 or 64 bits, for TensorFlow counts in no others."""
    wide = name if name in _COUNTED else "float64" if "float" in name else "int64"
    bounds = [tf.cast(x, dtype_of(wide)) for x in (start, stop, step)]
    return tf.cast(tf.range(*bounds), dtype_of(name))


_COUNTED = ("int32", "int64", "float32", "float64")


def if_any(wanted: Any, then: Any, otherwise: Any) -> Any:
    return tf.cond(tf.reduce_any(wanted), then, otherwise)
