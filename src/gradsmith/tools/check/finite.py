"""Gradients that are NaN or infinite where the derivative is an ordinary number."""

from __future__ import annotations

import numpy as np

from .first import Ground
from .model import Finding

TRIED = 3


def not_finite(ground: Ground, scenario: str) -> Finding | None:
    """A finding if a gradient is not finite although the derivative is.

    At the edge of a domain both may be infinite (sqrt at 0): that is no mistake. NaN is
    one wherever the value is finite.
    """
    if not np.all(np.isfinite(ground.y)):
        return None
    for i in _spread(np.flatnonzero(ground.not_finite)):
        part = ground.flat.arguments.part_of(i)
        g = _gradient(ground, i)
        slope = _slope(ground, i)
        if np.isfinite(g) or (slope is None and not np.isnan(g)):
            continue
        known = "" if slope is None else f", and so is its derivative, {slope}"
        where = f"{part.name}{list(part.index(i))}" if part.shape else part.name
        return Finding(
            "not finite",
            f"the gradient is {g} at {where} = {ground.x[i]:.6g}, where the value is "
            f"finite{known}",
            argument=part.name,
            scenario=scenario,
            elements=f"at {part.name} = {ground.x[i]:.6g}",
            diagnosis="not finite",
            repair="write the rule such that nothing in it overflows or divides by "
            "zero there; a masked branch needs a safe argument too (gnp.where twice)",
        )
    return None


def _spread(places: np.ndarray) -> np.ndarray:
    """A few of them, from all over."""
    return places[:: max(1, len(places) // TRIED)][:TRIED]


def _gradient(ground: Ground, i: int) -> float:
    return float(ground.point.pull(np.ones(ground.y.size))[i])


def _slope(ground: Ground, i: int) -> str | None:
    """The derivative of the sum of the outputs by one element, if it is a number."""
    v = np.zeros(ground.x.size)
    v[i] = ground.scale[i]
    found = ground.slope(v)
    if not np.all(ground.settled(found)):
        return None
    low, high = np.sum(found.low) / v[i], np.sum(found.high) / v[i]
    return f"{low:.4g}" if low == high else f"anything from {low:.4g} to {high:.4g}"
