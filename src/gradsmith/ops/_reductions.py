"""What a loss makes of its parts: their mean, their sum, or themselves."""

from __future__ import annotations

from inspect import signature
from math import prod
from typing import Any

from .. import numpy as gnp
from ..operations.define import operation
from ..program.kernels.mode import in_kernel
from ._inputs import adds_up, like, wide, wrong

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


def chosen(y: Any) -> Any:
    """y as a choice of one of two, to be added up.

    XLA adds up products and sums in one loop with their factors, which it reads in
    slow pieces; what it has to choose it writes first. The mean of huber of 128 x 1024
    in JAX, with its gradient: 57 us, and 102 without this choice; of the binary cross
    entropy 129 and 217.
    """
    return y if in_kernel() else gnp.where(y == gnp.inf, gnp.inf, y)


def summed(op: Any, total: Any, args: Any, reduction: str, x: Any) -> Any:
    """`op(*args)` of each element, reduced, in the precision of x.

    `args` are x and the target as `operands` gives them, and an option. Where nothing
    else makes one loop of it, `total`, which is `total_of(op)`, adds up within the
    operation: its kernel writes no array but the gradient.
    """
    z, t, option = args
    if reduction == "none" or not _is_in_rows(z, t):
        return reduced(op(wide(z), wide(t), option), reduction, x)
    return like(total(z, t, option, reduction), x)


def _is_in_rows(x: Any, t: Any) -> bool:
    """Whether rows of them are long, and enough for several threads if they are large.

    Where there is a compiler, it makes one loop of them anyway.
    """
    if not adds_up(x) or tuple(t.shape) != tuple(x.shape):
        return False
    *rows, columns = x.shape or (0,)
    if not prod(rows):
        return False  # the mean of nothing is NaN
    return columns >= ROW and (bool(rows) or columns < SHARED)


ROW = 64  # elements; a row of fewer takes as long
SHARED = 1 << 17  # elements that a kernel gives to several threads, row by row


def total_of(op: Any) -> Any:
    """An operation of x, a target and an option, added up; a mean is divided by n.

    Its rule is linear: with 1 / n in place of dy it is what dy is multiplied by. Half
    precision is computed in float32.
    """

    def total(x: Any, t: Any, option: float, reduction: str) -> Any:
        rows = gnp.sum(op.fn(wide(x), wide(t), option), axis=-1)
        return like(gnp.sum(rows / _count(x, reduction)), x)

    def scaled(
        dy: Any, x: Any, t: Any, option: float, reduction: str, **needs: Any
    ) -> Any:
        dr = 1 / _count(x, reduction)
        slopes = op.vjp_rule(dr, None, wide(x), wide(t), option, **needs)
        dy = wide(dy)
        return tuple(None if s is None else like(s * dy, x) for s in slopes)

    def rule(dy: Any, y: Any, x: Any, t: Any, option: float, reduction: str) -> Any:
        return scaled(dy, x, t, option, reduction)

    def rule_of_needs(
        dy: Any, y: Any, x: Any, t: Any, option: float, reduction: str, *, needs: Any
    ) -> Any:
        return scaled(dy, x, t, option, reduction, needs=needs)

    total.__name__ = total.__qualname__ = op.name
    found = operation(total)
    takes_needs = "needs" in signature(op.vjp_rule).parameters
    found.vjp(rule_of_needs if takes_needs else rule)
    return found


def _count(x: Any, reduction: str) -> int:
    return prod(x.shape) if reduction == "mean" else 1
