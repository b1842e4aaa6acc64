"""What a loss makes of its parts: their mean, their sum, or themselves."""

from __future__ import annotations

from inspect import signature
from math import prod
from typing import Any

from .. import numpy as gnp
from ..operations.define import operation
from ._inputs import known_values, like, wrong

REDUCTIONS = ("mean", "sum", "none")


def require_reduction(op: str, reduction: Any) -> None:
    if reduction not in REDUCTIONS:
        known = ", ".join(map(repr, REDUCTIONS))
        raise wrong(op, "reduction", f"one of {known}", repr(reduction), "give one")


def reduced(parts: Any, reduction: str, x: Any) -> Any:
    """The parts, added up before they are rounded to the precision of x."""
    if reduction == "none":
        return like(parts, x)
    if reduction == "sum":
        return like(gnp.sum(parts), x)
    shape = gnp.shape(parts)
    n = prod(shape) if all(isinstance(n, int) for n in shape) else 0
    # PyTorch writes out the upstream gradient of a mean, but not that of a sum.
    return like(gnp.sum(parts) / n if n else gnp.mean(parts), x)


def summed(op: Any, total: Any, args: Any, reduction: str, x: Any) -> Any:
    """`op(*args)` of each element, reduced, in the precision of x.

    Where nothing else makes one loop of it, `total`, which is `total_of(op)`, adds up
    within the operation: its kernel writes no array but the gradient.
    """
    z, t, _ = args
    if reduction == "none" or not _is_in_rows(z, t):
        return reduced(op(*args), reduction, x)
    n = prod(z.shape) if reduction == "mean" else 1
    return like(total(*args, n), x)


def _is_in_rows(x: Any, t: Any) -> bool:
    """Whether rows of them are long, and enough for several threads if they are large.

    Their values are known where nothing compiles.
    """
    if known_values(x) is None or tuple(t.shape) != tuple(x.shape):
        return False
    *rows, columns = x.shape or (0,)
    return columns >= ROW and (bool(rows) or columns < SHARED)


ROW = 64  # elements; a row of fewer takes as long
SHARED = 1 << 17  # elements that a kernel gives to several threads, row by row


def total_of(op: Any) -> Any:
    """An operation of x, a target and an option, added up and divided by n.

    Its rule is linear: with 1 / n in place of dy it is what dy is multiplied by.
    """

    def total(x: Any, t: Any, option: float, n: int) -> Any:
        return gnp.sum(gnp.sum(op.fn(x, t, option), axis=-1) / n)

    def scaled(slopes: Any, dy: Any) -> Any:
        return tuple(None if s is None else s * dy for s in slopes)

    def rule(dy: Any, y: Any, x: Any, t: Any, option: float, n: int) -> Any:
        return scaled(op.vjp_rule(1 / n, None, x, t, option), dy)

    def rule_of_needs(
        dy: Any, y: Any, x: Any, t: Any, option: float, n: int, *, needs: Any
    ) -> Any:
        return scaled(op.vjp_rule(1 / n, None, x, t, option, needs=needs), dy)

    total.__name__ = total.__qualname__ = op.name
    found = operation(total)
    takes_needs = "needs" in signature(op.vjp_rule).parameters
    found.vjp(rule_of_needs if takes_needs else rule)
    return found
