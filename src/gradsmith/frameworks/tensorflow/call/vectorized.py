"""A node of a loop body as one for all iterations, for tf.vectorized_map and its like.

TensorFlow's own conversion drops the gradient of such a node. Here it is traced as a
function, whose captures are tensors of the loop body; given their values in all
iterations, it is mapped over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..private import (
    SymbolicTensor,
    call_with_captured,
    converted_by,
    record_operation,
    wrap,
)


def vectorize(gradient: Callable[..., Any], loop: Any, make_node: Any) -> list[Any]:
    """Convert a node; `loop` is the conversion, with the node's converted inputs."""
    op = loop.op
    traced = tf.function(lambda *dys: gradient(op, *dys)).get_concrete_function(
        *op.inputs
    )
    outputs = {id(y): i for i, y in enumerate(op.outputs)}

    def converted(x: Any) -> Any:
        if id(x) in outputs:
            return outputs[id(x)]
        if type(x) is SymbolicTensor and x.graph is op.graph:
            return converted_by(loop, x)
        return wrap(x, False)  # from outside: the same in all iterations

    captured = [converted(x) for x in traced.captured_inputs]
    loop.stack_inputs()
    inputs = [x.t for x in loop.inputs]

    def mapped(*dys: Any) -> list[Any]:
        # Whole numbers have no upstream gradient, and a trace wants a tensor
        pairs = zip(dys, node.outputs, strict=True)
        given = [tf.zeros_like(y) if dy is None else dy for dy, y in pairs]
        values = [ys[x] if isinstance(x, int) else x for x in captured]
        return _map(traced, given, values)

    node = make_node(inputs, mapped)
    record_operation(op.name, node.outputs, inputs, mapped)
    ys = [wrap(y, True) for y in node.outputs]
    return ys


def _map(traced: Any, dys: Sequence[Any], captured: Sequence[Any]) -> list[Any]:
    stacked = [x.t for x in captured if x.is_stacked]

    def one(given: Any) -> list[Any]:
        dys, rest = given[0], iter(given[1])
        values = [next(rest) if x.is_stacked else x.t for x in captured]
        return call_with_captured(traced, list(dys), values)

    return list(tf.vectorized_map(one, (list(dys), stacked)))
