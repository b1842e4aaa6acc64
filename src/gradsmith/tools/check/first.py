"""First order: is <pull(u), v> the derivative of <u, f> along v?

Both sides are numbers, at any size, and the signs of u and v are random, so that a
wrong element shows whatever the others are. Small ones are made visible too:

- u is scaled such that each output counts the same, and leaves out those outputs whose
  differences have not settled;
- arguments whose share in the result is below what can be seen are moved once more,
  without the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from .comparison import Test, sums
from .differences import Slope
from .flat import Part
from .noise import MANY
from .scales import norm, power_of_two, usual
from .surroundings import STEP, Surroundings
from .ties import tied
from .triangles import mirrored

SIGMAS = 8.0  # how many of its errors a sum may be off
SHARP = 1e4  # an output this much less certain than the usual one is left out
FEW_DIGITS = 2.0**-33  # what a rule may lose by rounding, at most
HIDDEN = 1e3  # what is that close to the resolution would not be seen
GROUPS = 3  # of elements, each hidden by those before


class Ground(Surroundings):
    """A point at which the rule is compared with differences."""

    def tests(
        self, *, even: bool = False, done: Callable[[str], bool] = lambda name: False
    ) -> Iterator[Test]:
        """The comparisons for each argument, until enough is known of it.

        Also with equal elements moved alike, of one argument or of several.
        """
        for part in self.flat.arguments.parts:
            for test in self._of(part, even):
                if done(part.name):
                    break
                yield test
        ties = tied(self.flat, self.x) if self.x.size < MANY else None
        if ties is None or np.any(self.not_finite[ties.elements]):
            return
        for test in self.along(ties.part, ties.elements, even=True):
            if any(map(done, (*ties.names, ties.part.name))):
                break
            yield test

    def _of(self, part: Part, even: bool) -> Iterator[Test]:
        chosen = np.zeros(self.x.size, bool)
        chosen[part.slice] = np.isfinite(self.x[part.slice])
        if even:
            yield from self.along(part, chosen, even=True)
        for _ in range(GROUPS):
            if not np.any(chosen):
                break
            found = []
            for test in self.along(part, chosen):
                found.append(test)
                yield test
            chosen = self._hidden(found, chosen)

    def along(
        self,
        part: Part,
        chosen: np.ndarray,
        step: float = STEP,
        even: bool = False,
        among: np.ndarray | None = None,
    ) -> Iterator[Test]:
        """The comparisons for some elements of an argument, and some of the outputs."""
        v = self.direction()
        if even:  # what is equal stays equal
            first, which = np.unique(self.x, return_index=True, return_inverse=True)[1:]
            v = mirrored(v[first][which], self.flat)
        v = np.where(chosen & ~self.not_finite, v, 0.0)
        for test in self._along(part, v, step, among):
            yield replace(test, even=even)

    def again(self, test: Test, step: float, among: np.ndarray) -> Iterator[Test]:
        """The same comparisons with fresh directions, and with what the rule rounds."""
        for each in self.along(test.part, test.v != 0, step, test.even, among):
            few = each.gap < FEW_DIGITS * each.scale
            lost = self._lost_digits(each) if few and each.is_wrong else 0.0
            yield replace(each, error=each.error + lost)

    def _lost_digits(self, test: Test) -> float:
        """What is lost on the way through the rule: multiples of u show it."""
        lost = 0.0
        for k in (1.1, 1.3, 1.7):
            terms = np.where(test.v != 0, self.point.pull(k * test.u), 0.0) * test.v / k
            lost = max(lost, norm(np.nan_to_num(terms - test.terms)))
        return SIGMAS * lost

    def _along(
        self, part: Part, v: np.ndarray, step: float, among: np.ndarray | None
    ) -> Iterator[Test]:
        if not np.any(v):
            return
        found = self.slope(v, step)
        for u in self._weights(found, among):
            if not np.any(u):
                continue
            g = self.point.pull(u)
            bad = ~np.isfinite(g) & (v != 0)
            if np.any(bad):
                self.not_finite |= bad
                yield from self._along(part, np.where(bad, 0.0, v), step, among)
                return
            yield self._compare(part, v, u, g, found)

    def _compare(
        self, part: Part, v: np.ndarray, u: np.ndarray, g: np.ndarray, found: Slope
    ) -> Test:
        terms = np.where(v != 0, g, 0.0) * v
        low, high, error, size = sums(u, found)
        return Test(
            part,
            v,
            u,
            terms,
            low,
            high,
            SIGMAS * error + 64 * self.flat.eps * norm(terms),
            max(size, norm(terms))
            or norm(np.where(u != 0, self.y, 0.0) * u)
            or norm(u),
            found,
        )

    def _hidden(self, tests: list[Test], chosen: np.ndarray) -> np.ndarray:
        """Those of the elements whose share is too small to be seen by any test."""
        hidden = chosen & ~self.not_finite
        for test in tests:
            hidden &= np.abs(test.terms) < HIDDEN * test.error / np.sqrt(hidden.size)
        # If all of them are hidden, to move them once more would show no more.
        return np.zeros_like(chosen) if np.array_equal(hidden, chosen) else hidden

    def _weights(self, found: Slope, among: np.ndarray | None) -> Iterator[np.ndarray]:
        """Upstreams for what is known well: as it is, and each output alike."""
        settled = self.settled(found)
        if among is not None:
            settled &= among
        if not np.any(settled):
            return
        moves = settled & (found.size > 0)
        if found.lost is not None:
            moves &= ~found.lost
        some = bool(np.any(moves))
        usual_ones = moves if some else settled
        known = settled & sharp(found.error, usual_ones)
        yield np.where(known, self.upstream(), 0.0)
        if not some:
            return
        size = np.maximum(found.size, 1e3 * found.error)
        # What does not move is scaled like the others.
        size = np.where(moves, size, usual(size[moves]))
        known = settled & sharp(found.error / size, usual_ones)
        yield np.where(known, self.upstream() / power_of_two(size), 0.0)


def sharp(error: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Not much less certain than is usual among some."""
    return error <= SHARP * usual(error[some])
