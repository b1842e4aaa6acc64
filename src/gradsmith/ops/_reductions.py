"""What a loss makes of its parts: their mean, their sum, or themselves."""

from __future__ import annotations

from typing import Any

from .. import numpy as gnp
from ._inputs import like, wrong

REDUCTIONS = ("mean", "sum", "none")


def require_reduction(op: str, reduction: Any) -> None:
    if reduction not in REDUCTIONS:
        known = ", ".join(map(repr, REDUCTIONS))
        raise wrong(op, "reduction", f"one of {known}", repr(reduction), "give one")


def reduced(parts: Any, reduction: str, x: Any, count: Any = None) -> Any:
    """The parts, added up before they are rounded to the precision of x.

    The mean is over `count` of them if that is given.
    """
    if reduction == "none":
        return like(parts, x)
    if reduction == "sum":
        return like(gnp.sum(parts), x)
    if count is None:
        return like(gnp.mean(parts), x)
    return like(gnp.sum(parts) / count, x)
