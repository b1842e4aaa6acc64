"""First order: is <pull(u), v> the derivative of <u, f> along v?

Both sides are numbers, at any size, and the signs of u and v are random, so that a
wrong element shows whatever the others are. Two things make small ones visible too:

- v moves only arguments whose share in the result is of one magnitude (a stratum), and
  all those whose gradient is claimed to be zero;
- u is scaled such that each output counts the same, and leaves out those outputs whose
  differences have not settled.

What looks wrong is tried again with fresh u, v and steps before it is called wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .differences import Slope, noise_of, slope
from .flat import Flat, Part, Point

STRATUM = 1e-4  # the smallest share within one stratum
STRATA = 4
SETTLED = 1e-3  # the error of an output that still tells something
SIGMAS = 8.0
TRIES = 3
CLEAR = 0.1  # a resolution beyond this says nothing


@dataclass(frozen=True)
class Test:
    """One comparison: by the rule, by differences, and by how much they may differ."""

    part: Part
    v: np.ndarray
    u: np.ndarray
    rule: float
    low: float
    high: float
    error: float
    scale: float

    @property
    def gap(self) -> float:
        """How far the rule is from the nearest subgradient."""
        return max(self.low - self.rule, self.rule - self.high, 0.0)

    @property
    def is_wrong(self) -> bool:
        return self.gap > self.error or not np.isfinite(self.rule)

    @property
    def resolution(self) -> float:
        """The smallest relative error that would be seen."""
        return self.error / self.scale if self.scale else np.inf

    @property
    def says_something(self) -> bool:
        return self.resolution < CLEAR


class Ground:
    """A point at which directions are tried: value, rule and noise there."""

    def __init__(self, flat: Flat, random: np.random.Generator) -> None:
        self.flat = flat
        self.random = random
        self.x = flat.x
        self.point: Point = flat.linear(self.x)
        self.y = self.point.y
        self.noise = noise_of(flat.value, self.x, self.y, eps=flat.eps, random=random)

    def tests(self) -> Iterator[Test]:
        """The comparisons for each argument."""
        share = self.point.pull(self.upstream())
        for part in self.flat.arguments.parts:
            for chosen in _strata(part, share, self.scale):
                yield from self.along(part, chosen)

    def along(self, part: Part, chosen: np.ndarray, step: float = 0.125) -> list[Test]:
        """The comparisons for some elements of an argument."""
        v = np.where(chosen, self.direction(), 0.0)
        found = self.slope(v, step)
        kinds = (self._flat_weights(found), self._equal_weights(found))
        return [self.compare(part, v, u, found) for u in kinds if np.any(u)]

    def slope(self, v: np.ndarray, step: float = 0.125) -> Slope:
        return slope(self.flat.value, self.x, v, y=self.y, noise=self.noise, step=step)

    def compare(self, part: Part, v: np.ndarray, u: np.ndarray, found: Slope) -> Test:
        g = self.point.pull(u)
        with np.errstate(all="ignore"):
            terms = g * v
            used = u != 0
            low, high, error = (
                np.where(used, each, 0.0)
                for each in (u * found.low, u * found.high, u * found.error)
            )
            size = np.sqrt(np.sum(np.maximum(np.abs(low), np.abs(high)) ** 2))
            rounding = 64 * self.flat.eps * np.sqrt(np.sum(terms**2))
        return Test(
            part,
            v,
            u,
            float(np.sum(np.where(v != 0, terms, 0.0))),
            float(np.sum(np.minimum(low, high))),
            float(np.sum(np.maximum(low, high))),
            float(SIGMAS * np.sqrt(np.sum(error**2)) + rounding),
            float(
                max(size, np.sqrt(np.sum(terms[v != 0] ** 2)))
                or norm(u * self.y)
                or norm(u)
            ),
        )

    # --- what u and v are made of

    @property
    def scale(self) -> np.ndarray:
        """How far each argument is moved, times the step."""
        x = np.abs(self.x)
        some = x[(x > 0) & np.isfinite(x)]
        typical = float(np.median(some)) if some.size else 1.0
        return power_of_two(np.where(x > 0, x, typical))

    def direction(self) -> np.ndarray:
        """Random signs and magnitudes; few digits, so that x + h v is exact."""
        return self.scale * self._signed(self.x.size)

    def upstream(self) -> np.ndarray:
        return self._signed(self.y.size)

    def _signed(self, n: int) -> np.ndarray:
        # Multiples of 1/4: exact in every dtype, and equal to each other by chance
        # seldom enough.
        sign = self.random.choice([-1.0, 1.0], n)
        return sign * self.random.integers(3, 8, n) / 4

    def _settled(self, found: Slope) -> np.ndarray:
        with np.errstate(all="ignore"):
            size = np.maximum(found.size, np.abs(self.y))
            return found.error <= SETTLED * np.where(np.isfinite(size), size, 0.0)

    def _flat_weights(self, found: Slope) -> np.ndarray:
        """All outputs as they are, but those much less certain than the usual."""
        settled = self._settled(found)
        if not np.any(settled):
            return np.zeros(self.y.size)
        usual = np.median(found.error[settled])
        sharp = settled & (found.error <= 1e3 * usual)
        return np.where(sharp, self.upstream(), 0.0)

    def _equal_weights(self, found: Slope) -> np.ndarray:
        """Each output counts the same, unless it is less certain than that."""
        settled = self._settled(found)
        size = np.where(settled, np.maximum(found.size, 1e3 * found.error), 0.0)
        some = size[size > 0]
        if not some.size:
            return np.zeros(self.y.size)
        size = np.where(found.size > 0, size, np.maximum(size, np.median(some)))
        weights = self.upstream() / power_of_two(np.where(size > 0, size, 1.0))
        return np.where(settled, weights, 0.0)


def _strata(part: Part, share: np.ndarray, scale: np.ndarray) -> Iterator[np.ndarray]:
    """Groups of an argument's elements whose share in the result is alike."""
    inside = np.zeros(share.size, bool)
    inside[part.slice] = True
    with np.errstate(all="ignore"):
        size = np.abs(share) * scale
    left = inside & np.isfinite(size) & (size > 0)
    for _ in range(STRATA):
        if not np.any(left):
            break
        chosen = left & (size >= STRATUM * np.max(size[left]))
        yield chosen
        left &= ~chosen
    rest = left | (inside & (size == 0))
    if np.any(rest):
        yield rest


def norm(x: np.ndarray) -> float:
    return float(np.sqrt(np.sum(x * x)))


def power_of_two(x: np.ndarray) -> np.ndarray:
    """The power of two below each positive number.

    >>> power_of_two(np.array([1.0, 3.0, 0.2]))
    array([1.   , 2.   , 0.125])
    """
    return np.exp2(np.floor(np.log2(x)))
