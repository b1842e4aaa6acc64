"""Functions of NumPy arrays inside of TensorFlow."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ....core.cotangent import Spec
from ....core.errors import NotDifferentiableError, UnsupportedOperationError
from ..private import compiled_by_xla, could_record, executing_eagerly, record_operation
from .sites import GraphNode
from .specs import is_floating


def host(
    fn: Callable[..., Sequence[Any]],
    arrays: Sequence[Any],
    specs: Sequence[Spec],
    name: str,
) -> list[Any]:
    """Run a function of NumPy arrays, also inside of a graph."""
    if executing_eagerly():
        ys = [tf.convert_to_tensor(y) for y in fn(*(x.numpy() for x in arrays))]
    else:
        _refuse_xla(name)
        ys = _Opaque(_called_back(fn, arrays, specs), arrays, name).ys
    if could_record():

        def refuse(*dys: Any) -> list[Any]:
            raise NotDifferentiableError(_why(name))

        record_operation(name, ys, list(arrays), refuse, refuse)
    return ys


def _called_back(
    fn: Callable[..., Sequence[Any]], arrays: Sequence[Any], specs: Sequence[Spec]
) -> list[Any]:
    # TensorFlow keeps the function for ever, so that it must not hold the specs, which
    # may be found out from the arrays, and with those the graph
    dtypes = [spec.dtype for spec in specs]

    def run(*xs: Any) -> list[Any]:
        pairs = zip(fn(*xs), dtypes, strict=True)
        return [np.asarray(y, dtype) for y, dtype in pairs]

    ys = tf.numpy_function(run, arrays, [tf.as_dtype(dtype) for dtype in dtypes])
    for y, spec in zip(ys, specs, strict=True):
        y.set_shape(spec.shape)
    return ys


def _refuse_xla(name: str) -> None:
    if compiled_by_xla():
        raise UnsupportedOperationError(
            f"operation {name!r} runs Python code, which XLA can't compile "
            "(jit_compile=True)\n"
            "  what to do: trace it in a tf.function without jit_compile, in Keras "
            "model.compile(jit_compile=False), or write it in gradsmith.numpy with "
            "gs.operation"
        )


def _why(name: str) -> str:
    return (
        f"operation {name!r} runs Python code, which can't be differentiated beyond "
        "its rules. A derivative of the rules was requested: write them in "
        "gradsmith.numpy, on arrays of the framework (gs.operation)."
    )


class _Opaque(GraphNode):
    """What Python code computed in a graph: a derivative of it fails when it is used.

    Whether one will be used is not known when it is built.
    """

    def __init__(self, ys: Sequence[Any], arrays: Sequence[Any], name: str) -> None:
        self.operation = name
        super().__init__([*ys, *arrays])
        self.ys = self.outputs[: len(ys)]

    def gradient(self, op: Any, *dys: Any) -> list[Any]:
        if op is None:  # a SavedModel is written
            warnings.warn(
                f"operation {self.operation!r} runs Python code, which is not saved: "
                "the SavedModel will fail in another process. Save the model as "
                ".keras, or its weights, or write the operation in gradsmith.numpy "
                "(gs.operation).",
                stacklevel=2,
            )
        arrays = self.ys[0].op.inputs[len(self.ys) :]
        fail = [self._failing(x) if is_floating(x) else None for x in arrays]
        return [*(None for _ in self.ys), *fail]

    def _failing(self, x: Any) -> Any:
        name = self.operation

        def fail(x: Any) -> Any:
            raise NotDifferentiableError(_why(name))

        dx = tf.numpy_function(fail, [x], x.dtype, stateful=False)
        dx.set_shape(x.shape)
        return dx
