"""Bodies in closure form that made plain numbers of their arguments.

What their gradient captured is then a constant to TensorFlow, and a second derivative
would silently miss it. That can't be seen from outside, but a body that does it can't
be traced either: it is traced for this once a second derivative is asked for, if its
gradient captured numbers that the body computed, or nobody follows its outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np
import tensorflow as tf

from ....core.errors import UnsupportedOperationError
from ....core.reach import captured
from ....operations.application import run_body
from ....operations.parameters import Bound
from ..private import could_record, orders_of
from .specs import TensorSpec

_NUMBERS = (np.ndarray, np.generic, float, complex)


def check_of(
    operation: Any, bound: Bound, xs: Sequence[Any], grad: Any, ys: Sequence[Any]
) -> Callable[[], None] | None:
    """What is to be called before the gradient is, if the body may hide something."""
    if grad is None or (orders_of(ys) and not _numbers_of(operation.fn, grad)):
        return None

    def check() -> None:
        if could_record() and orders_of(xs):
            _trace(operation, bound, xs)

    return check


def _numbers_of(body: Any, grad: Any) -> bool:
    """Whether a gradient captured numbers that are not written in the body."""
    if type(body) is not FunctionType or type(grad) is not FunctionType:
        return False
    local, written = body.__code__.co_cellvars, body.__code__.co_consts
    for name, value in captured(grad):
        if name not in local or not isinstance(value, _NUMBERS):
            continue
        if isinstance(value, np.ndarray) or value not in written:
            return True
    return False


def _trace(operation: Any, bound: Bound, xs: Sequence[Any]) -> None:
    specs: list[Any] = [TensorSpec(x) for x in xs]
    with tf.__internal__.FuncGraph(operation.name).as_default():
        traced = [tf.compat.v1.placeholder(s.native, s.shape) for s in specs]
        try:
            run_body(operation, bound.with_leaves(traced))
        except Exception as error:
            raise UnsupportedOperationError(
                f"the gradient of operation {operation.name!r} is being "
                "differentiated, and what it captured in the body can't be traced: "
                f"the arguments became plain there ({error}). Write the rule in rule "
                "form (gs.operation and @op.vjp), which receives the arguments "
                "themselves, or the body in gradsmith.numpy."
            ) from error
