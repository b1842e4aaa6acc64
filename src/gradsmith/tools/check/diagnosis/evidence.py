"""The derivative of some outputs by some elements of an argument, both ways.

    truth    T[j, i] = dy_j / dx_i, by differences, with an error for each
    rule     G(u), and as a matrix M with G(u) = u M where the rule is linear

Diagnoses are tried on the two matrices. They contain all of a small argument, and
chosen elements and outputs of a large one; u is zero for the outputs omitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..differences import Slope, slope
from ..flat import Part
from ..numerics import random_signed
from ..point import SETTLED, SIGMAS, Point

ROUNDING = 64.0  # units in the last place that a rule may lose


@dataclass(frozen=True)
class Evidence:
    """Truth and rule at a point, for some elements (columns) and outputs (rows)."""

    point: Point
    part: Part
    columns: np.ndarray
    rows: np.ndarray
    truth: np.ndarray
    error: np.ndarray
    kinks: np.ndarray

    # --- gradients for an upstream u of the rows

    def rule(self, u: np.ndarray) -> np.ndarray:
        full = np.zeros(self.point.y.size)
        full[self.rows] = u
        with np.errstate(all="ignore"):
            return self.point.linearization.pull(full)[self.columns]

    def expected(self, u: np.ndarray) -> np.ndarray:
        return u @ self.truth

    def tolerance(self, u: np.ndarray) -> np.ndarray:
        """By how much the right gradient may differ from the one by differences."""
        noise = np.sqrt((u * u) @ (self.error * self.error))
        size = np.sqrt((u * u) @ (self.truth * self.truth))
        return SIGMAS * noise + ROUNDING * self.point.flat.eps * size

    def upstream(self, random: np.random.Generator, *, size: float = 1.0) -> np.ndarray:
        return size * random_signed(random, len(self.rows))

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
        return SIGMAS * self.error + ROUNDING * self.point.flat.eps * size

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
            g, t, margin = self.rule(u), self.expected(u), self.tolerance(u)
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
        return ROUNDING * self.point.flat.eps * size

    def of_rows(self, chosen: np.ndarray) -> Evidence:
        """The same for some of the outputs."""
        return replace(
            self,
            rows=self.rows[chosen],
            truth=self.truth[chosen],
            error=self.error[chosen],
            kinks=self.kinks[chosen],
        )


USUAL, SHARP = (2.0**-6, 3), (2.0**-4, 5)  # the first step, and how many


def gather_evidence(
    point: Point,
    part: Part,
    *,
    columns: np.ndarray | None = None,
    rows: np.ndarray | None = None,
    elementwise: bool = False,
    sharp: bool = False,
) -> Evidence:
    """Differences for the elements; at once if each output has its own element."""
    places = np.arange(part.start, part.start + part.size)
    columns = places if columns is None else columns
    rows = np.arange(point.y.size) if rows is None else rows
    shape = (len(rows), len(columns))
    truth, error, kinks = np.zeros(shape), np.zeros(shape), np.zeros(shape, bool)
    step, steps = SHARP if sharp else USUAL
    for which, v in _directions(point, columns, together=elementwise):
        found = _slope(point, v, rows, step=step, steps=steps)
        scale = point.scale[columns[which]]
        middle = (found.low + found.high) / 2
        if elementwise:
            own = (np.searchsorted(rows, columns[which] - part.start), which)
        else:
            own = (slice(None), which[0])
        pick = own[0]
        truth[own] = middle[pick] / scale
        error[own] = found.error[pick] / scale
        kinks[own] = found.kinks[pick]
    return _settled(Evidence(point, part, columns, rows, truth, error, kinks))


def _slope(point: Point, v: np.ndarray, rows: np.ndarray, **steps: Any) -> Slope:
    """Of some outputs; on the perturbed elements only, where that is enough."""
    few = point.subset(v)
    if few is not None and np.array_equal(few.outputs, rows):
        return slope(few.value, few.x, v[few.places], y=few.y, noise=few.noise, **steps)
    return slope(
        lambda x: point.flat.value(x)[rows],
        point.x,
        v,
        y=point.y[rows],
        noise=point.noise[rows],
        **steps,
    )


def _directions(
    point: Point, columns: np.ndarray, *, together: bool
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    every = np.arange(len(columns))
    for which in [every] if together else np.split(every, len(every)):
        v = np.zeros(point.x.size)
        v[columns[which]] = point.scale[columns[which]]
        yield which, v


def _settled(found: Evidence) -> Evidence:
    """Without the outputs whose differences have not settled."""
    with np.errstate(all="ignore"):
        size = np.abs(np.where(np.isfinite(found.truth), found.truth, 0.0))
        natural = np.abs(found.point.y[found.rows]).max(initial=0.0)
        scale = found.point.scale[found.columns]
        size = np.maximum(size.max(axis=0, initial=0.0), natural / scale)
        good = np.isfinite(found.truth) & (found.error <= SETTLED * size)
    if good.all():
        return found
    return found.of_rows(np.flatnonzero(np.all(good, axis=1)))
