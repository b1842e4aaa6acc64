"""Subgradients where several kinks meet: sorting equal numbers, equal eigenvalues.

The median of three equal numbers moves by the median of the directions, from both
sides; the gradient of each choice of one of the three is valid none the less. Clarke's
generalised gradient is what the derivatives close by tend to, and all between them:
those are sampled, with steps much shorter than the way to the sampled points.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .differences import Slope
from .triangles import mirrored

AWAY = 2.0**-18  # relative to x: far enough that y still has digits for differences
SHORTER = 64
FIRST, MORE = 3, 16
SMOOTH = 2.0**-8  # what derivatives so close by may differ, of their size


def widened(ground: Any, v: np.ndarray, found: Slope) -> Slope:
    """The slope along v, with what derivatives close by are where they jump."""
    with np.errstate(all="ignore"):
        close = [_close_by(ground, v) for _ in range(FIRST)]
        if not np.any(_jumps(ground, close, found)):
            return found  # it is smooth, as far as a few points tell
        close += [_close_by(ground, v) for _ in range(MORE)]
        jumps = _jumps(ground, close, found)
    low = np.where(jumps, np.minimum(found.low, np.min(close, axis=0)), found.low)
    high = np.where(jumps, np.maximum(found.high, np.max(close, axis=0)), found.high)
    return replace(found, low=low, high=high)


def _close_by(ground: Any, v: np.ndarray) -> np.ndarray:
    h = AWAY / SHORTER
    away = ground.scale * ground.random.uniform(-1, 1, v.shape)
    x = ground.x + AWAY * mirrored(away, ground.flat)
    return (ground.value(x + h * v) - ground.value(x - h * v)) / (2 * h)


def _jumps(ground: Any, close: list[np.ndarray], found: Slope) -> np.ndarray:
    """Where derivatives close by differ by more than a curve or rounding explains."""
    spread = np.max(close, axis=0) - np.min(close, axis=0)
    size = np.maximum(np.max(np.abs(close), axis=0), found.size)
    noise = 64 * ground.noise * SHORTER / AWAY
    return (spread > SMOOTH * size) & (spread > noise)  # never for NaN
