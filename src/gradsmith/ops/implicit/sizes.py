"""How large a vector is, and how exact its numbers are."""

from __future__ import annotations

from typing import Any

import gradsmith.numpy as gnp


def norm(r: Any) -> Any:
    """|r|, whose squares neither overflow nor vanish."""
    unit = largest(r)
    return unit * gnp.sqrt(gnp.sum((r / unit) ** 2))


def largest(r: Any) -> Any:
    """The largest of |r|; 1 if that is zero or no number: to divide by."""
    if r.shape[0] == 0:
        return 1 + gnp.sum(r)
    found = gnp.max(gnp.abs(r))
    return gnp.where((found > 0) & finite(found), found, gnp.ones_like(found))


def finite(x: Any) -> Any:
    return gnp.abs(x) < gnp.inf


def precision(x: Any) -> float:
    """The distance from 1 to the next number of this kind."""
    return float(gnp.finfo(x.dtype).eps)


def tolerance(tol: float | None, x: Any) -> float:
    """What is reached in any case: some hundred units in the last place."""
    return tol if tol is not None else 1e3 * precision(x)


def probe(x: Any) -> Any:
    """A vector like x that lies along no axis."""
    i = gnp.arange(x.shape[0], dtype=x.dtype, like=x)
    return 1 + 0.5 * gnp.cos(7 * i * i + 1)
