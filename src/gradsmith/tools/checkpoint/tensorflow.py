"""gs.checkpoint on TensorFlow: an operation of ours, whose rules run it again.

tf.recompute_grad refuses keyword arguments in graphs (tensorflow#56692), loses captured
tensors, and draws new random numbers in the second run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import tensorflow as tf

from ...core import trees
from ...core.arrays import unwrapped
from ...frameworks.tensorflow.private import could_record, executing_eagerly
from ...operations.operation import Operation
from .flat import Flat, name_of
from .plan import Plan
from .randomness import Streams
from .tensorflow_block import Block
from .tensorflow_functions import autograph_status, call, inside_out
from .tensorflow_replay import repeated


def checkpoint(fn: Any, args: Any, kwargs: Any, *, verify: bool = False) -> Any:
    turned = inside_out(fn)
    if turned is not None and not verify:
        return turned(*args, **kwargs)
    if turned is not None:  # values are compared in eager mode
        fn = fn.python_function
    return _checkpointed(fn, args, kwargs, Streams(fn, args, kwargs), verify=verify)


def _checkpointed(
    fn: Callable[..., Any],
    args: Any,
    kwargs: Any,
    streams: Streams,
    *,
    verify: bool = False,
) -> Any:
    name = name_of(fn)
    leaves = trees.leaves((args, kwargs))
    unwrapped([x for x in leaves if not hasattr(x, "value")], f"checkpoint of {name!r}")
    if executing_eagerly() and not could_record():
        return fn(*args, **kwargs)
    flat = Flat(fn, args, kwargs, _is_array)
    block = Block(flat, name, streams)
    if verify:
        from .tensorflow_verify import require_equal

        with repeated(require_equal(block), {}):  # the numbers that are drawn already
            ys = block.run()
    else:
        ys = block.run()
    if not block.floating:
        return block.restored(ys, ys)
    stopped = [tf.stop_gradient(ys[i]) for i in block.floating]

    def body(*inputs: Any) -> Any:
        return tuple(stopped)

    body.__name__ = name
    operation = Operation(body, closure=False)
    operation.vjp(lambda dy, y, *inputs: block.gradients(inputs, list(dy)))
    outputs = operation(*block.inputs)
    new = list(ys)
    for i, y in zip(block.floating, outputs, strict=True):
        new[i] = y
    return block.restored(new, ys)


def _is_array(x: Any) -> bool:
    # A variable has a tensor inside, which says where it is.
    return isinstance(x, tf.Tensor) and x.dtype != tf.resource


def scan(plan: Plan) -> list[Any]:
    streams = Streams(plan.step, plan.start)
    plan.call = partial(call, autograph_status())

    def block(leaves: list[Any], inner: Any) -> list[Any]:
        return _checkpointed(inner, (leaves,), {}, streams)

    return plan.in_blocks(block)


def unstacked(x: Any) -> Any:
    return tf.unstack(x)
