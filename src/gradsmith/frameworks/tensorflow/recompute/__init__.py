"""Recomputing on TensorFlow: an operation of ours, whose rule reruns the function.

tf.recompute_grad refuses keyword arguments in graphs (tensorflow#56692), loses captured
tensors, and draws new random numbers in the second run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ....core import trees
from ....core.arrays import unwrapped
from ....operations.operation import Operation
from ..._randomness import Streams
from ..._recompute import FlatCall, ScanPlan, name_of
from ..private import (
    Function,
    autograph_context,
    autographed,
    could_record,
    executing_eagerly,
)
from .block import Block
from .functions import with_checkpoint_inside
from .replay import replayed
from .state import rewinding, unchanged

__all__ = ["checkpoint", "rewinding", "scan", "unchanged", "unstack"]


def checkpoint(fn: Any, args: Any, kwargs: Any, *, verify: bool = False) -> Any:
    if isinstance(fn, Function) and executing_eagerly():
        if not verify:
            return with_checkpoint_inside(fn, checkpoint)(*args, **kwargs)
        fn = fn.python_function  # values are compared in eager mode
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
    flat = FlatCall(fn, args, kwargs, _is_array)
    block = Block(flat, name, streams)
    if verify:
        from .verify import require_equal

        with replayed(require_equal(block), {}):  # the numbers that are drawn already
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


def scan(plan: ScanPlan) -> list[Any]:
    streams = Streams(plan.step, plan.start)
    step, context = plan.step, autograph_context()
    plan.step = lambda *args: autographed(step, context)(*args)

    def block(leaves: list[Any], inner: Any) -> list[Any]:
        return _checkpointed(inner, (leaves,), {}, streams)

    return plan.in_blocks(block)


def unstack(x: Any) -> Any:
    return tf.unstack(x)
