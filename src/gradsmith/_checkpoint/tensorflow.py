"""gs.checkpoint on TensorFlow: an operation of ours, whose rules run it again.

tf.recompute_grad refuses keyword arguments in graphs (tensorflow#56692), loses captured
tensors, and draws new random numbers in the second run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from .. import _tree
from .._arrays import unwrapped
from .._operation import Operation
from ..frameworks.tensorflow._private import could_record, executing_eagerly
from .flat import Flat
from .plan import Plan
from .tensorflow_block import Block
from .tensorflow_replay import repeated


def checkpoint(
    fn: Callable[..., Any], args: Any, kwargs: Any, *, verify: bool = False
) -> Any:
    name = getattr(fn, "__name__", None) or type(fn).__name__
    leaves = _tree.leaves((args, kwargs))
    unwrapped([x for x in leaves if not hasattr(x, "value")], f"checkpoint of {name!r}")
    if executing_eagerly() and not could_record():
        return fn(*args, **kwargs)
    flat = Flat(fn, args, kwargs, lambda x: isinstance(x, tf.Tensor))
    block = Block(flat, name)
    if verify:
        from .tensorflow_verify import require_equal

        with repeated(require_equal(block), {}):  # the numbers that are drawn already
            ys = block.run()
    else:
        ys = block.run()
    if not block.floating:
        return flat.restored(ys)
    stopped = [tf.stop_gradient(ys[i]) for i in block.floating]

    def body(*inputs: Any) -> Any:
        return tuple(stopped)

    body.__name__ = name
    operation = Operation(body, closure=False)
    operation.vjp(lambda dy, y, *inputs: block.gradients(inputs, list(dy)))
    outputs = operation(*block.inputs)
    for i, y in zip(block.floating, outputs, strict=True):
        ys[i] = y
    return flat.restored(ys)


def scan(plan: Plan) -> list[Any]:
    def block(leaves: list[Any], inner: Any) -> list[Any]:
        return checkpoint(inner, (leaves,), {})

    return plan.in_blocks(block)


def unstacked(x: Any) -> Any:
    return tf.unstack(x)
