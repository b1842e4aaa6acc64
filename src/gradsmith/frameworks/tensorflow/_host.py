"""Functions of NumPy arrays inside of TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..._cotangent import Spec
from ..._errors import UnsupportedOperationError
from ._private import compiled_by_xla, executing_eagerly


def host(
    fn: Callable[..., Sequence[Any]],
    arrays: Sequence[Any],
    specs: Sequence[Spec],
    name: str,
) -> list[Any]:
    """Run a function of NumPy arrays, also inside of a graph."""
    dtypes = [tf.as_dtype(spec.dtype) for spec in specs]
    if executing_eagerly():
        found = fn(*(x.numpy() for x in arrays))
        return [tf.convert_to_tensor(y, t) for y, t in zip(found, dtypes, strict=True)]
    if compiled_by_xla():
        raise UnsupportedOperationError(
            f"operation {name!r} runs Python code, which XLA can't compile "
            "(jit_compile=True)\n"
            "  what to do: trace it in a tf.function without jit_compile, in Keras "
            "model.compile(jit_compile=False), or write it in gradsmith.numpy with "
            "gs.operation"
        )
    ys = tf.numpy_function(lambda *xs: list(fn(*xs)), arrays, dtypes, name=name)
    for y, spec in zip(ys, specs, strict=True):
        y.set_shape(spec.shape)
    return ys
