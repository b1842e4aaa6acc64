"""Recording TensorFlow's own operations: `tf.custom_gradient`."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import partial
from types import MethodType
from typing import Any

import numpy as np
import tensorflow as tf

from .._recording import Decorated, Recorder, Seen
from .private import before_custom_gradients

_HANDLES = (tf.resource, tf.variant)  # of things that are no arrays


def recorded(recorder: Recorder) -> AbstractContextManager[None]:
    return before_custom_gradients(partial(_record, recorder))


def _record(recorder: Recorder, f: Any, args: Any, kwargs: Any) -> None:
    function: Any = f.__func__ if isinstance(f, MethodType) else f
    name = str(getattr(function, "__qualname__", None) or type(f).__name__)
    op, inputs = Decorated(tf.custom_gradient, f), (tuple(args), dict(kwargs))
    recorder.record("tensorflow", op, name, (function,), inputs, read)


def read(x: Any) -> Seen | None:
    if isinstance(x, (np.ndarray, np.generic)):
        return Seen(x.shape, str(x.dtype), lambda: np.array(x))
    if not isinstance(x, (tf.Tensor, tf.Variable)) or x.dtype in _HANDLES:
        return None
    shape = (None,) if x.shape.rank is None else tuple(x.shape)
    return Seen(shape, x.dtype.name, partial(_copy, x) if _has_values(x) else None)


def _has_values(x: Any) -> bool:
    if isinstance(x, tf.Variable):
        return tf.executing_eagerly()
    return hasattr(x, "numpy")


def _copy(x: Any) -> Any:
    return np.array(x.numpy())
