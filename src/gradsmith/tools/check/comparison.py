"""One number by the rule, and the same by differences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .differences import Slope, parts
from .flat import Part
from .numerics import norm

CLEAR = 0.1  # a resolution beyond this tells nothing
ROUNDING = 2.0**-46


@dataclass(frozen=True)
class Comparison:
    """One comparison: by the rule, by differences, and by how much they may differ."""

    part: Part
    v: np.ndarray
    u: np.ndarray
    terms: np.ndarray  # of the rule's side: gradient times v
    low: float
    high: float
    error: float
    scale: float
    slope: Slope  # of each output
    even: bool = False  # equal elements are perturbed alike

    @cached_property
    def rule(self) -> float:
        return float(np.sum(self.terms))

    @property
    def gap(self) -> float:
        """How far the rule is from the nearest subgradient."""
        return max(self.low - self.rule, self.rule - self.high, 0.0)

    @property
    def is_wrong(self) -> bool:
        return self.gap > max(self.error, ROUNDING * self.scale)

    @property
    def resolution(self) -> float:
        """The smallest relative error that would be seen."""
        return self.error / self.scale if self.scale else np.inf

    @property
    def says_something(self) -> bool:
        return self.resolution < CLEAR


def weighted_slope(u: np.ndarray, found: Slope) -> tuple[float, float, float, float]:
    """<u, slope> at least and at most; the norms of its error and of itself."""
    sums = []
    for part in parts(u.size):
        known = u[part] != 0
        one, two, error = (
            np.where(known, each[part], 0.0) * u[part]
            for each in (found.low, found.high, found.error)
        )
        low, high = np.minimum(one, two), np.maximum(one, two)
        size = np.maximum(np.abs(one), np.abs(two))
        sums.append((np.sum(low), np.sum(high), norm(error), norm(size)))
    low, high, error, size = np.array(sums).reshape(-1, 4).T
    return float(np.sum(low)), float(np.sum(high)), norm(error), norm(size)
