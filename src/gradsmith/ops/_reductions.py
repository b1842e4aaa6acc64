"""What a loss makes of its parts: their mean, their sum, or themselves."""

from __future__ import annotations

from math import prod
from typing import Any

from .. import numpy as gnp
from ._inputs import like, wrong

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
