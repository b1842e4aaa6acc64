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
from ..scales import norm
from .at_once import at_once
from .case import Case
from .evidence import ROUNDING
from .places import places

SINGLE = 12  # elements that are looked at one by one
STEPS = (2.0**-7, 2.0**-9)
VISIBLE = 1e-6  # of the largest


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
    first = probe.boundary()
    if probe.one(first) <= 0:
        return Location(None, none, none)
    if first + 1 == size or probe.state(first + 1, size, quick=True) <= 0:
        flags = np.zeros(size, bool)
        flags[first] = True
        return Location(places(case.part, flags), np.array([first + start]), none)
    last = size - 1 - probe.boundary(backward=True)
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
    share = np.abs(probe.g * probe.v)[case.part.slice]
    claimed = np.flatnonzero(share > VISIBLE * np.max(share))
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
    states = np.array([probe.one(int(i)) for i in chosen])
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
        self.v = self.ground.direction()
        self.u = self.ground.upstream()
        self.g = self.ground.point.pull(self.u)

    def boundary(self, *, backward: bool = False) -> int:
        """How many elements come before the first wrong one, or after the last."""
        for quick in (True, False):
            k = self._halved(backward, quick)
            i = self.case.part.size - 1 - k if backward else k
            if self.one(i) > 0:
                break
        return k

    def _halved(self, backward: bool, quick: bool) -> int:
        size = self.case.part.size
        low, high = 0, size - 1
        while low < high:
            middle = (low + high) // 2
            ends = (size - 1 - middle, size) if backward else (0, middle + 1)
            wrong = self.state(*ends, quick=quick) > 0
            low, high = (low, middle) if wrong else (middle + 1, high)
        return low

    def one(self, i: int) -> int:
        """The state of one element, with short steps and with long ones."""
        state = self.state(i, i + 1)
        return min(state, self.state(i, i + 1, quick=True)) if state > 0 else state

    def state(self, start: int, stop: int, *, quick: bool = False) -> int:
        """Of the elements from start to stop: 1 if wrong, -1 if right, 0 if nothing."""
        here = slice(self.case.part.start + start, self.case.part.start + stop)
        v = np.zeros(self.ground.x.size)
        v[here] = self.v[here]
        with np.errstate(all="ignore"):
            value, error = self._slope(v, quick)
            used = np.isfinite(value) & np.isfinite(error)
            terms = self.g[here] * v[here]
            truth = float((self.u * value)[used].sum())
            margin = SIGMAS * norm((self.u * error)[used])
            margin += ROUNDING * self.ground.flat.eps * norm(terms)
            if not abs(float(terms.sum()) - truth) <= margin:
                return 1
            return -1 if abs(truth) > 8 * margin else 0

    def _slope(self, v: np.ndarray, quick: bool) -> tuple[np.ndarray, np.ndarray]:
        if quick:  # enough for groups, and shorter than most kinks are near
            h = 2.0**-18 if self.ground.flat.eps < 1e-12 else STEPS[-1]
            value = self._central(v, h)
            return value, 1e-6 * np.abs(value) + self.ground.noise / h
        wide, narrow = (self._central(v, h) for h in STEPS)
        value = narrow + (narrow - wide) / 15
        return value, np.abs(value - narrow) / 8 + self.ground.noise / STEPS[-1]

    def _central(self, v: np.ndarray, h: float) -> np.ndarray:
        f, x = self.ground.flat.value, self.ground.x
        return (f(x + h * v) - f(x - h * v)) / (2 * h)
