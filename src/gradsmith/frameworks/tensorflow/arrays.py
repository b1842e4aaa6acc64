"""TensorFlow's tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ...operations.info import is_floating
from .call.specs import describe

version = tf.__version__
spec = describe


def array(x: Any, dtype: str | None = None) -> Any:
    x = tf.convert_to_tensor(x)
    return x if dtype is None else tf.cast(x, dtype)


def as_array(x: Any) -> Any:
    return x if isinstance(x, (tf.Tensor, tf.Variable)) else tf.constant(x)


def numpy(x: Any) -> np.ndarray:
    x = tf.convert_to_tensor(x)  # of IndexedSlices
    return np.array((tf.cast(x, tf.float32) if x.dtype == tf.bfloat16 else x).numpy())


def floats(x: Any) -> np.ndarray | None:
    if isinstance(x, tf.IndexedSlices):
        x = x.values
    if not is_floating(x):
        return None
    x = x.numpy() if hasattr(x, "numpy") else np.asarray(x)
    return x if x.dtype.kind in "fc" else np.asarray(x, np.float32)  # bfloat16


def dtype_name(x: Any) -> str:
    return x.dtype.name


def stack(arrays: Sequence[Any]) -> Any:
    return tf.stack(arrays)
