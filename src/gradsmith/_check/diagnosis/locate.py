"""Which elements of a large argument have a wrong gradient.

If each output has its own element, one slope tells all. Else the gradients of a group
are compared along one random direction, and groups are halved: the first wrong element
is where the shortest wrong beginning ends. Some between the first and the last one are
looked at on their own. Memory is linear, and time but for a logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..first import SIGMAS, Ground
from .at_once import at_once
from .case import Case
from .evidence import ROUNDING
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
    if not case.elementwise:
        return _by_halves(case)
    wrong, right = at_once(case)
    flags = np.zeros(case.part.size, bool)
    flags[wrong] = True
    first = beginning(wrong, right)
    words = places(case.part, flags) if first is None else _from(first)
    return Location(words, wrong + case.part.start, right + case.part.start, first)


def beginning(wrong: np.ndarray, right: np.ndarray) -> int | None:
    """From where on all are wrong, if several are, and all after the right ones.

    Between the last right and the first wrong one, it is the roundest number.
    """
    if wrong.size < 2 or not right.size or wrong[0] < right[-1]:
        return None
    low, high = int(right[-1]) + 1, int(wrong[0])
    for power in reversed(range(high.bit_length())):
        if (round_one := high >> power << power) >= low:
            return round_one
    return high


def _from(first: int) -> str:
    return f"from element {first} on (flat)"


def _by_halves(case: Case) -> Location:
    probe = Probe(case)
    start, size = case.part.start, case.part.size
    none = np.zeros(0, int)
    if probe.state(0, size) <= 0:
        return Location(None, none, none)
    first = probe.boundary(lambda k: probe.state(0, k + 1) > 0)
    if first + 1 == size or probe.state(first + 1, size) <= 0:
        flags = np.zeros(size, bool)
        flags[first] = True
        return Location(places(case.part, flags), np.array([first + start]), none)
    last = size - 1 - probe.boundary(lambda k: probe.state(size - 1 - k, size) > 0)
    wrong, right = _singles(case, probe, first, last)
    begin = beginning(wrong, right)
    words = _words(case, first, last, right) if begin is None else _from(begin)
    return Location(words, wrong + start, right + start, begin)


def _singles(
    case: Case, probe: Probe, first: int, last: int
) -> tuple[np.ndarray, np.ndarray]:
    """Elements on their own: between the first and the last wrong one, and around."""
    size, random = case.part.size, case.random
    # Where the rule gives something, a right gradient can be seen.
    claimed = np.flatnonzero(probe.g[case.part.slice])
    before, inside = claimed[claimed < first], claimed[claimed > first]
    chosen = np.unique(
        [
            max(first - 1, 0),
            *random.permutation(before)[:SINGLE],
            *random.permutation(inside)[: SINGLE // 2],
            *random.integers(first, last + 1, SINGLE // 2),
            size - 1,
        ]
    )
    states = np.array([probe.state(int(i), int(i) + 1) for i in chosen])
    wrong = np.unique([first, last, *chosen[states > 0]])
    return wrong, chosen[states < 0]


def _words(case: Case, first: int, last: int, right: np.ndarray) -> str | None:
    if np.any((right > first) & (right < last)):
        return f"some of the elements {first} to {last} (flat)"
    flags = np.zeros(case.part.size, bool)
    flags[first : last + 1] = True
    return places(case.part, flags)


class Probe:
    """Compares groups of an argument's elements at a point."""

    def __init__(self, case: Case, ground: Ground | None = None) -> None:
        self.case = case
        self.ground = ground or case.ground
        self.scale = self.ground.scale
        self.u = self.ground.upstream()
        self.g = self.ground.point.pull(self.u)

    def boundary(self, holds) -> int:
        """The first k for which it holds, if it does from there on."""
        low, high = 0, self.case.part.size - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle + 1, high)
        return low

    def state(self, start: int, stop: int) -> int:
        """Of the elements from start to stop: 1 if wrong, -1 if right, 0 if nothing."""
        here = slice(self.case.part.start + start, self.case.part.start + stop)
        v = np.zeros(self.ground.x.size)
        signs = self.case.random.choice([-1.0, 1.0], stop - start)
        v[here] = self.scale[here] * signs
        with np.errstate(all="ignore"):
            wide, narrow = (self._central(v, h) for h in STEPS)
            value = narrow + (narrow - wide) / 15
            error = np.abs(value - narrow) / 8 + self.ground.noise / STEPS[-1]
            used = np.isfinite(value) & np.isfinite(error)
            terms = self.g[here] * v[here]
            truth = float(np.sum((self.u * value)[used]))
            margin = SIGMAS * np.sqrt(np.sum((self.u * error)[used] ** 2))
            margin += ROUNDING * self.ground.flat.eps * np.sqrt(np.sum(terms**2))
            if not abs(float(np.sum(terms)) - truth) <= margin:
                return 1
            return -1 if abs(truth) > 8 * margin else 0

    def _central(self, v: np.ndarray, h: float) -> np.ndarray:
        f, x = self.ground.flat.value, self.ground.x
        return (f(x + h * v) - f(x - h * v)) / (2 * h)
