"""Operations on MLX's arrays, by `mx.custom_function` with all three of its rules.

With a vjp alone MLX differentiates the body in forward mode and under `mx.vmap`,
without a word. Here each of them is by the operation's rule.
"""

from __future__ import annotations

from typing import Any

from ....operations.application import HINTS
from ....operations.parameters import Bound
from .callbacks import host
from .nodes import attached
from .rules import BoundCall

__all__ = ["call", "host", "refusal"]


def call(operation: Any, bound: Bound) -> Any:
    """Run an operation, so that MLX differentiates it by its rule."""
    one = BoundCall(operation, bound)
    return one.structured(attached(one, one.args))


def refusal(plan: Any, arrays: Any) -> str:
    """Why MLX runs no kernels: they need values.

    `mx.eval` of what an inner derivative gave cuts it off from the arguments of an
    outer one, whose gradient is then 0 without a word, and nothing tells whether there
    is an outer one.
    """
    return (
        "MLX composes it: a kernel needs values at the call, and to evaluate an array "
        "there can cut it off from an outer derivative"
    )


def _hint(error: Exception) -> str:
    """A note for an exception of code that wanted values while it was traced."""
    if "[eval]" not in str(error):
        return ""
    return (
        "MLX traces this code without values (mx.compile, mx.vmap): choose by "
        "gnp.where(condition, a, b) (import gradsmith.numpy as gnp) instead of if, "
        "and call gnp instead of np"
    )


HINTS.append(_hint)
