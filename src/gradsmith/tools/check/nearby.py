"""Subgradients where several kinks meet: sorting equal numbers, equal eigenvalues.

The median of three equal numbers moves by the median of the directions, from both
sides; the gradient of each choice of one of the three is valid none the less. Clarke's
generalised gradient is what the derivatives close by tend to, and all between them:
those are sampled, with steps much shorter than the way to the sampled points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .comparison import Test
from .scales import usual

if TYPE_CHECKING:
    from .surroundings import Surroundings

AWAY = 2.0**-18  # far enough that y still has digits for differences
SHORTER = 64
FIRST, MORE = 12, 24
FEW = 3  # of many elements, some show it at once
SMOOTH = 0.05  # what slopes so near may differ by, if there is no kink


def is_among_neighbours(ground: Surroundings, test: Test) -> bool:
    """Whether the rule is between the slopes at points near by, where they jump."""
    if ground.flat.eps > AWAY**2:
        return False  # too few digits to look so closely
    first = FIRST if ground.y.size < 1000 else FEW
    close = [_slope_near(ground, test.v) for _ in range(first)]
    if not np.any(_jumps(close) & (test.u != 0)):
        return False  # it is smooth
    close += [_slope_near(ground, test.v) for _ in range(MORE)]
    here, jumps = ground.slope(test.v), _jumps(close)
    low, high = np.min(close, 0), np.max(close, 0)
    beyond = (high - low) / 2  # what a sample misses
    low = np.where(jumps, np.fmin(low - beyond, here.low), here.low)
    high = np.where(jumps, np.fmax(high + beyond, here.high), here.high)
    ends = np.where(test.u != 0, [low, high], 0.0) * test.u
    least, most = np.sum(np.min(ends, 0)), np.sum(np.max(ends, 0))
    return bool(least - test.error <= test.rule <= most + test.error)


def _slope_near(ground: Surroundings, v: np.ndarray) -> np.ndarray:
    h = AWAY / SHORTER
    away, few = AWAY * ground.direction(), ground.thin(v)
    if few is not None:
        x, v = few.x + away[few.places], v[few.places]
        return few.whole((few.value(x + h * v) - few.value(x - h * v)) / (2 * h))
    x = ground.x + away
    return (ground.value(x + h * v) - ground.value(x - h * v)) / (2 * h)


def _jumps(close: list[np.ndarray]) -> np.ndarray:
    """Where slopes differ by more than a curve explains; never for NaN."""
    size = np.max(np.abs(close), axis=0)
    known = size[np.isfinite(size)]
    typical = usual(known) if known.size else 0.0
    spread = np.max(close, axis=0) - np.min(close, axis=0)
    return spread > SMOOTH * np.maximum(size, typical)
