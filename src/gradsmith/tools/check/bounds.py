"""Values that stay within the bounds of a spec."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core import trees

Bounds = tuple[float | None, float | None]  # low and high


def into_bounds(inputs: Any, bounds: Sequence[Bounds]) -> Any:
    """Inputs whose floating-point arrays are within bounds, one pair for each.

    What is outside is reflected at the bound: signs and magnitudes keep their variety.
    """
    if all(pair == (None, None) for pair in bounds):
        return inputs
    pairs = iter(bounds)

    def leaf(x: Any) -> Any:
        floating = isinstance(x, np.ndarray) and x.dtype.kind in "fc"
        return reflected(x, *next(pairs)) if floating else x

    return trees.map(leaf, inputs)


def reflected(x: np.ndarray, low: float | None, high: float | None) -> np.ndarray:
    """Reflect what is outside of the bounds, as often as it takes.

    >>> reflected(np.array([-3.0, 0.5, 1.25]), 0, 1)
    array([1.  , 0.5 , 0.75])
    """
    if low is not None and high is not None:
        inside = (x >= low) & (x <= high)
        width = high - low
        with np.errstate(all="ignore"):
            beyond = np.mod(x - low, 2 * width) if width else np.zeros_like(x)
        return np.where(inside, x, low + np.minimum(beyond, 2 * width - beyond))
    if low is not None:
        return np.where(x < low, 2 * low - x, x)
    return x if high is None else np.where(x > high, 2 * high - x, x)
