"""Which values are of the same kind as those given: the same region and scale.

A function of positive numbers, or of those between 0 and 1, may be finite at some of
the others too. What a rule gives there, or at numbers much larger or smaller, is worth
knowing, but the given inputs don't ask for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .problem import Problem

LARGER, SMALLER = 4.0, 1 / 64


@dataclass(frozen=True)
class Kind:
    """The region and scale of the elements of an array."""

    low: float
    high: float
    smallest: float  # magnitude; 0 is of the same kind, if the region holds it
    largest: float

    @property
    def has_sign(self) -> bool:
        """Whether the operation fails for the other sign."""
        return self.low >= 0 or self.high <= 0

    def holds(self, x: np.ndarray) -> np.ndarray:
        """For each element whether it is of this kind."""
        size, real = np.abs(x), np.real(x)
        inside = (real >= self.low) & (real <= self.high) & (size <= self.largest)
        return inside & ((size >= self.smallest) | (x == 0))


def kinds_of(problem: Problem, random: np.random.Generator) -> list[Kind]:
    """The kind of each argument."""
    return [_kind(problem, i, random) for i in range(len(problem.xs))]


def _kind(problem: Problem, i: int, random: np.random.Generator) -> Kind:
    x = problem.xs[i]
    some = x[np.isfinite(x)]
    size = np.abs(some[some != 0])
    if not size.size:
        return Kind(-np.inf, np.inf, 0.0, np.inf)
    low, high = -np.inf, np.inf
    if not np.iscomplexobj(x):
        tiny = 0.0 if np.any(some == 0) else np.nextafter(0.0, 1.0)
        if np.all(some >= 0) and _is_outside(problem, i, -x, random):
            low = tiny
        if np.all(some <= 0) and _is_outside(problem, i, -x, random):
            high = -tiny
        beyond = np.sign(x) + x
        if np.all(size <= 1) and (
            _is_outside(problem, i, beyond, random) or _is_clamped(problem, i, beyond)
        ):
            low, high = max(low, -1.0), min(high, 1.0)
    return Kind(low, high, SMALLER * np.min(size), LARGER * np.max(size))


def _is_clamped(problem: Problem, i: int, x: np.ndarray) -> bool:
    """Whether the operation takes these values as others: it does not change there.

    The inverse of a sigmoid may clamp its argument, where it is not in its domain.
    """
    values = [
        problem.value(
            [k * x if j == i else other for j, other in enumerate(problem.xs)]
        )
        for k in (1.0, 1.25)
    ]
    return all(map(np.array_equal, *values))


def _is_outside(
    problem: Problem, i: int, x: np.ndarray, random: np.random.Generator
) -> bool:
    """Whether the operation fails, or is not finite, near these values.

    One that iterates may never end there: it is not tried.
    """
    if problem.traits.iterates:
        return True
    xs = [x if k == i else other for k, other in enumerate(problem.xs)]
    near = [each * random.uniform(0.8, 1.2, each.shape) for each in xs]
    try:
        ys = problem.value(near)
    except Exception:
        return True
    return not all(np.all(np.isfinite(y)) for y in ys)
