"""Parameters that have gradients, among whole numbers that have none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .vectors import is_float


def smooth(fn: Callable[[Any], Any], params: Any) -> tuple[Callable[..., Any], Any]:
    """A function of a list as one of those that have gradients; and these."""
    return lambda some: fn(filled(params, some)), chosen(params, params)


def chosen(params: Any, others: Any) -> list[Any]:
    """Those of the others that stand where parameters have gradients."""
    return [x for p, x in zip(params, others, strict=True) if is_float(p)]


def filled(params: Any, some: Any, *rest: Any) -> list[Any]:
    """Parameters with others in the places of those that have gradients."""
    others = iter(some)
    return [next(others) if is_float(p) else [*rest, p][0] for p in params]
