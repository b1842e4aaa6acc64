"""TensorFlow's operations: `tf.custom_gradient`."""

from __future__ import annotations

from functools import partial, wraps
from types import MethodType
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import custom_gradient

from .hooks import Hooks
from .place import Place, place_of
from .recorder import Recorder
from .seen import Decorated, Seen

_HANDLES = (tf.resource, tf.variant)  # of things that are no arrays


def install(hooks: Hooks, module: Any) -> None:
    # What every decorated function calls, whenever it was decorated
    for name in ("_eager_mode_decorator", "_graph_mode_decorator"):
        hooks.replace(custom_gradient, name, partial(_recording, hooks.recorder))


def _recording(recorder: Recorder, decorator: Any) -> Any:
    @wraps(decorator)
    def recording(f: Any, args: Any, kwargs: Any) -> Any:
        __tracebackhide__ = True
        place, inputs = partial(_place_of, f), (tuple(args), dict(kwargs))
        recorder.record(
            "tensorflow", Decorated(tf.custom_gradient, f), place, inputs, read, f
        )
        return decorator(f, args, kwargs)

    return recording


def _place_of(f: Any) -> Place:
    function: Any = f.__func__ if isinstance(f, MethodType) else f
    name = getattr(function, "__qualname__", None) or type(f).__name__
    return place_of(str(name), function)


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
