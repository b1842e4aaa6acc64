"""Operations on JAX's arrays: native under each of its transformations.

Reverse mode, forward mode, or both follow from the one rule that an operation has. An
operation runs at once, on concrete arrays, or is staged.
"""

from __future__ import annotations

from typing import Any

from jax.core import Tracer

from ....operations.application import HINTS, run_body
from ....operations.parameters import Bound
from . import eager, fused
from .callbacks import host
from .captured import CapturedError
from .fused import is_on_gpu, refusal
from .hints import hint
from .rules import BoundCall
from .staged import Staged

__all__ = ["GRADIENTS_AHEAD", "call", "host", "is_on_gpu", "refusal"]

GRADIENTS_AHEAD = True

HINTS.append(hint)


def call(operation: Any, bound: Bound) -> Any:
    """Run an operation, so that JAX differentiates it by its rule."""
    leaves = bound.leaves
    for x in leaves:
        if isinstance(x, Tracer):
            break
    else:  # nothing to differentiate but what the body captures, which JAX does
        if operation.fused is not None:
            ran = fused.ran(BoundCall(operation, bound), leaves)
            if ran is not None:
                return ran.y
        return run_body(operation, bound)[0]
    one = BoundCall(operation, bound)
    if eager.is_eager():
        try:
            return eager.call(one, leaves)
        except CapturedError:
            pass  # the body is staged, so that what it captures is known
    return Staged(one, leaves)(leaves)
