"""Which elements of a large argument have a wrong gradient.

If each output has its own element, one slope tells all. Else the gradients of a group
are compared along one random direction, and groups are halved: the first wrong element
is where the shortest wrong beginning ends. Some between the first and the last one are
looked at on their own. Memory is linear, and time but for a logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..differences import slope
from ..first import SIGMAS, Ground
from .case import Case
from .evidence import ROUNDING, USUAL
from .places import places

SINGLE = 12  # elements that are looked at one by one
STEPS = (2.0**-7, 2.0**-9)


@dataclass(frozen=True)
class Location:
    """Wrong and right elements, as far as they are known, as places in the vector."""

    words: str | None
    wrong: np.ndarray
    right: np.ndarray
    first: int | None = None  # the first wrong element, if all from there on are wrong


def locate(case: Case) -> Location:
    return _at_once(case) if case.elementwise else _by_halves(case)


# --- all at once


def _at_once(case: Case) -> Location:
    wrong, some = flags_at_once(case, case.ground)
    start = case.part.start
    where = np.flatnonzero(wrong)
    first = int(where[0]) if where.size and where.size == wrong.size - where[0] else None
    return Location(
        places(case.part, wrong),
        where + start,
        np.flatnonzero(some & ~wrong) + start,
        first,
    )


def flags_at_once(case: Case, ground: Ground) -> tuple[np.ndarray, np.ndarray]:
    """Where the gradient is wrong, and where there is one, if it is elementwise."""
    v = np.zeros(ground.x.size)
    v[case.part.slice] = ground.scale[case.part.slice]
    step, steps = USUAL
    found = slope(
        ground.flat.value,
        ground.x,
        v,
        y=ground.y,
        noise=ground.noise,
        step=step,
        steps=steps,
    )
    u = ground.upstream()
    with np.errstate(all="ignore"):
        g = (ground.point.pull(u) * v)[case.part.slice]
        low, high = np.sort([u * found.low, u * found.high], axis=0)
        margin = SIGMAS * np.abs(u) * found.error
        margin += ROUNDING * ground.flat.eps * np.maximum(np.abs(g), np.abs(low))
        settled = np.isfinite(low) & np.isfinite(margin)
        wrong = settled & ~((g >= low - margin) & (g <= high + margin))
        return wrong, settled & (np.maximum(np.abs(low), np.abs(high)) > 8 * margin)


# --- by halves


def _by_halves(case: Case) -> Location:
    probe = Probe(case)
    start, size = case.part.start, case.part.size
    none = np.zeros(0, int)
    if not probe.is_wrong(0, size):
        return Location(None, none, none)
    first = probe.boundary(lambda k: probe.is_wrong(0, k + 1))
    if first + 1 == size or not probe.is_wrong(first + 1, size):
        flags = np.zeros(size, bool)
        flags[first] = True
        return Location(places(case.part, flags), np.array([first + start]), none)
    last = size - 1 - probe.boundary(lambda k: probe.is_wrong(size - 1 - k, size))
    inside = case.random.integers(first, last + 1, SINGLE)
    states = np.array([probe.is_wrong(i, i + 1) for i in inside])
    wrong = np.unique([first, last, *inside[states]]) + start
    right = np.unique(inside[~states]) + start
    words = _words(case, first, last, bool(states.all()))
    end = first if states.all() and last == size - 1 else None
    return Location(words, wrong, right, end)


def _words(case: Case, first: int, last: int, every: bool) -> str | None:
    flags = np.zeros(case.part.size, bool)
    flags[first : last + 1] = True
    if every:
        return places(case.part, flags)
    return f"some of the elements {first} to {last} (flat)"


class Probe:
    """Compares groups of an argument's elements at a point."""

    def __init__(self, case: Case, ground: Ground | None = None) -> None:
        self.case = case
        self.ground = ground or case.ground
        self.u = self.ground.upstream()
        self.g = self.ground.point.pull(self.u)

    def boundary(self, holds) -> int:
        """The first k for which it holds, if it does from there on."""
        low, high = 0, self.case.part.size - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle + 1, high)
        return low

    def is_wrong(self, start: int, stop: int) -> bool:
        """Whether the elements from start to stop have a wrong gradient among them."""
        here = slice(self.case.part.start + start, self.case.part.start + stop)
        v = np.zeros(self.ground.x.size)
        signs = self.case.random.choice([-1.0, 1.0], stop - start)
        v[here] = self.ground.scale[here] * signs
        with np.errstate(all="ignore"):
            wide, narrow = (self._central(v, h) for h in STEPS)
            value = narrow + (narrow - wide) / 15
            error = np.abs(value - narrow) / 8 + self.ground.noise / STEPS[-1]
            used = np.isfinite(value) & np.isfinite(error)
            terms = self.g[here] * v[here]
            truth = float(np.sum((self.u * value)[used]))
            margin = SIGMAS * np.sqrt(np.sum((self.u * error)[used] ** 2))
            margin += ROUNDING * self.ground.flat.eps * np.sqrt(np.sum(terms**2))
            return not abs(float(np.sum(terms)) - truth) <= margin

    def _central(self, v: np.ndarray, h: float) -> np.ndarray:
        f, x = self.ground.flat.value, self.ground.x
        return (f(x + h * v) - f(x - h * v)) / (2 * h)
