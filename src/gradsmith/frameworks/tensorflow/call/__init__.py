"""Operations on TensorFlow: eager tapes and accumulators, graphs, and what saves them.

In eager mode an operation is told to the tapes and accumulators that are active. In a
graph it is also a node, whose gradient TensorFlow finds by name.
"""

from __future__ import annotations

from typing import Any

from ....operations.application import HINTS
from ....operations.parameters import Bound
from .. import private
from ..private import pass_on, tracing_type
from . import eager, graph, specs
from .callbacks import host

__all__ = ["GRADIENTS_AHEAD", "call", "host", "tracing_type"]

GRADIENTS_AHEAD = True

private.leave_alone("gradsmith")


def call(operation: Any, bound: Bound) -> Any:
    """Run an operation, so that TensorFlow differentiates it by its rule."""
    try:
        xs = [
            x if type(x) is private.EagerTensor else specs.as_tensor(x, operation.name)
            for x in bound.leaves
        ]
        run = eager.call if private.executing_eagerly() else graph.call
        return run(operation, bound, xs)
    except Exception as error:
        pass_on(error)
        raise


def _hint(error: Exception) -> str:
    """A note for an exception of code that wanted values while it was traced."""
    if "symbolic" not in str(error).lower():
        return ""
    return (
        "TensorFlow traces this code without values: choose by gnp.where(condition, a, "
        "b) (import gradsmith.numpy as gnp) instead of if, and call gnp instead of np; "
        "for NumPy, SciPy or C code on the values use gs.python_op"
    )


HINTS.append(_hint)
