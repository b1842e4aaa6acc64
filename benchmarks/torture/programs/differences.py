"""A directional derivative by central differences, with its error.

Three steps, each half of the one before, and two extrapolations (Richardson): their
difference is the error. Slopes to both sides that stay apart as the step shrinks are a
kink, and a derivative is not judged there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

STEP = 1e-3
EPS = float(np.finfo(float).eps)


@dataclass(frozen=True)
class Slope:
    value: float
    error: float
    kink: bool

    def judges(self, scale: float) -> bool:
        """Whether it is precise enough to tell a wrong derivative from a right one."""
        return not self.kink and self.error <= 1e-5 * max(scale, 1e-3)


def slope(along: Callable[[float], float], step: float = STEP) -> Slope:
    """The derivative at 0 of a function of one number."""
    middle = along(0.0)
    steps = (step, step / 2, step / 4)
    ends = [(along(h), along(-h)) for h in steps]
    if not np.isfinite([middle, *sum(ends, ())]).all():
        return Slope(float("nan"), float("inf"), kink=True)
    central = [(up - down) / (2 * h) for h, (up, down) in zip(steps, ends, strict=True)]
    bends = [
        abs(up - 2 * middle + down) / h
        for h, (up, down) in zip(steps, ends, strict=True)
    ]
    coarse, fine = ((4 * b - a) / 3 for a, b in pairwise(central))
    largest = max(abs(middle), *(abs(v) for pair in ends for v in pair))
    rounding = 20 * EPS * max(largest, 1.0) / steps[-1]
    # Of a smooth function the bend shrinks with the step: by 4 from first to last
    kink = bends[-1] > 1e3 * rounding + 1e-7 and bends[-1] > 0.4 * bends[0]
    return Slope(fine, abs(fine - coarse) + rounding, kink)
