"""The derivative of some outputs by some elements of an argument, both ways.

    truth    T[j, i] = dy_j / dx_i, by differences, with an error for each
    rule     G(u), and as a matrix M with G(u) = u M where the rule is linear

Hypotheses are tried on the two matrices. For a small argument they hold all of it, for
a large one chosen elements and outputs; u is zero for the outputs that are left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..first import SIGMAS, Ground
from ..flat import Part

ROUNDING = 64.0  # units in the last place that a rule may lose


@dataclass(frozen=True)
class Evidence:
    """Truth and rule at a point, for some elements (columns) and outputs (rows)."""

    ground: Ground
    part: Part
    columns: np.ndarray
    rows: np.ndarray
    truth: np.ndarray
    error: np.ndarray
    kinks: np.ndarray

    # --- gradients for an upstream u of the rows

    def rule(self, u: np.ndarray) -> np.ndarray:
        full = np.zeros(self.ground.y.size)
        full[self.rows] = u
        with np.errstate(all="ignore"):
            return self.ground.point.pull(full)[self.columns]

    def right(self, u: np.ndarray) -> np.ndarray:
        return u @ self.truth

    def tolerance(self, u: np.ndarray) -> np.ndarray:
        """By how much the right gradient may differ from the one by differences."""
        noise = np.sqrt((u * u) @ (self.error * self.error))
        size = np.sqrt((u * u) @ (self.truth * self.truth))
        return SIGMAS * noise + ROUNDING * self.ground.flat.eps * size

    def upstream(self, random: np.random.Generator, *, size: float = 1.0) -> np.ndarray:
        return (
            size
            * random.choice([-1.0, 1.0], len(self.rows))
            * (random.integers(3, 8, len(self.rows)) / 4)
        )

    # --- the rule as a matrix

    @cached_property
    def matrix(self) -> np.ndarray:
        """The rule's answers to the unit vectors: as many calls as there are rows."""
        units = np.eye(len(self.rows))
        found = [self.rule(u) for u in units]
        return np.array(found).reshape(self.truth.shape)

    @property
    def missing(self) -> np.ndarray:
        """What the rule would need to be right."""
        return self.truth - self.matrix

    @cached_property
    def margin(self) -> np.ndarray:
        """By how much the elements of `missing` may differ from zero."""
        size = np.maximum(np.abs(self.truth), np.abs(self.matrix))
        return SIGMAS * self.error + ROUNDING * self.ground.flat.eps * size

    def same(self, guess: np.ndarray) -> bool:
        """Whether a matrix is the true one, as far as can be seen."""
        return bool(np.all(np.abs(guess - self.truth) <= self.margin))

    # --- which elements are wrong

    def states(
        self, random: np.random.Generator, *, tries: int = 3, least: float = 0.0
    ) -> np.ndarray:
        """For each element 1 if its gradient is wrong, -1 if right, 0 if both are 0.

        A relative error below `least` is neither.
        """
        wrong = np.zeros(len(self.columns), bool)
        some = np.zeros(len(self.columns), bool)
        minor = np.zeros(len(self.columns), bool)
        for _ in range(tries):
            u = self.upstream(random)
            g, t, margin = self.rule(u), self.right(u), self.tolerance(u)
            margin += self._rounding(g, t)
            off = ~(np.abs(g - t) <= margin)
            tiny = np.abs(g - t) < least * np.maximum(np.abs(g), np.abs(t))
            wrong |= off & ~tiny
            minor |= off & tiny
            some |= np.abs(t) > 8 * margin
        return np.where(wrong, 1, np.where(some & ~minor, -1, 0))

    def _rounding(self, g: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Far below the largest, a gradient may be a difference of larger numbers."""
        size = np.maximum(np.abs(g), np.max(np.abs(t), initial=0.0))
        return ROUNDING * self.ground.flat.eps * size

    def of_rows(self, chosen: np.ndarray) -> Evidence:
        """The same for some of the outputs."""
        return replace(
            self,
            rows=self.rows[chosen],
            truth=self.truth[chosen],
            error=self.error[chosen],
            kinks=self.kinks[chosen],
        )
