"""What a body captured, found in the graph that it built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..private import number_of, orders_of
from .specs import is_floating

# What reads variables, and nothing else that could be differentiated
_READS = {"ReadVariableOp", "ResourceGather", "ResourceGatherNd"}


def captured_by(ys: Sequence[Any], xs: Sequence[Any], start: int) -> list[Any]:
    """The tensors that ys depend on, beside xs, of operations up to number `start`.

    Reads of variables are among them, and values from outside of a function, which
    become operations without inputs in it when they are first used.
    """
    found: dict[int, Any] = {}
    seen = {id(x) for x in xs}
    rest = list(ys)
    while rest:
        y = rest.pop()
        if id(y) in seen:
            continue
        seen.add(id(y))
        op = y.op
        if number_of(op) > start and op.inputs and op.type not in _READS:
            rest += op.inputs
        elif _can_vary(y):
            found[id(y)] = y
    return list(found.values())


def _can_vary(y: Any) -> bool:
    if y.op.type == "Const":
        return bool(orders_of([y]))  # a small tensor from outside of a function
    return is_floating(y) or y.dtype in (tf.resource, tf.variant)


def reads_of(variables: Sequence[Any]) -> Callable[[Any], bool]:
    """Whether a tensor is one of these variables, or what was read of it."""
    handles = {id(tf.convert_to_tensor(variable.handle)) for variable in variables}

    def is_read(x: Any) -> bool:
        return any(id(t) in handles for t in (x, *x.op.inputs[:1]))

    return is_read
