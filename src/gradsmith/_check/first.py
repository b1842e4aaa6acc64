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
from functools import cached_property

import numpy as np

from .comparison import Test
from .differences import STEPS, Slope, parts, slope
from .flat import Flat, Part, Point
from .noise import MANY, noise_of
from .scales import norm, on_grid, power_of_two, usual
from .thin import Thin, is_local, thin
from .ties import tied
from .triangles import mirrored

SETTLED = 1e-3  # the relative error of an output that still tells something
SIGMAS = 8.0  # how many of its errors a sum may be off
SHARP = 1e4  # an output this much less certain than the usual one is left out
FEW_DIGITS = 2.0**-33  # what a rule may lose by rounding, at most
HIDDEN = 1e3  # what is that close to the resolution would not be seen
GROUPS = 3  # of elements, each hidden by those before
STEP = 0.125
FINER = 2.0 ** np.array([-10, -20, -30])  # for functions with many waves in a step
STRAIGHT = 1e-8
# What a direction is made of: few digits, and none that are small beside another
DIGITS = np.array([-7, -6, -5, -4, -3, 3, 4, 5, 6, 7]) / 4
FEW = 4  # steps, for many elements


class Ground:
    """A point at which directions are tried: value, rule and noise there."""

    def __init__(self, flat: Flat, random: np.random.Generator) -> None:
        self.flat = flat
        self.random = random
        self.x = on_grid(flat.x, flat.eps)
        self.point: Point = flat.linear(self.x)
        self.y = self.point.y
        self.noise = noise_of(self.value, self.x, self.y, eps=flat.eps, random=random)
        # Where a gradient was not finite; more may come with other upstreams.
        self.not_finite = ~np.isfinite(self.point.pull(self.upstream()))

    def value(self, x: np.ndarray) -> np.ndarray:
        """f(x) near by; NaN where the operation fails, as outside of its domain."""
        try:
            return self.flat.value(x)
        except Exception:
            return np.full(self.y.shape, np.nan)

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

    def slope(self, v: np.ndarray, step: float = STEP) -> Slope:
        """By differences; once more with smaller steps, where most don't settle."""
        found = self._slope(v, step)
        for finer_step in step * FINER:
            if 2 * np.count_nonzero(self.settled(found)) >= found.error.size:
                break
            finer = self._slope(v, finer_step)
            # Straight at once, where the larger steps are not: one step of a staircase
            straight = finer.bend <= STRAIGHT * finer.size
            error = np.where(straight, np.inf, finer.error)
            found = found.or_better(replace(finer, error=error))
        return found

    def _slope(self, v: np.ndarray, step: float) -> Slope:
        few = self.thin(v)
        if few is not None:
            found = few.slope(v, self.noise, step=step)
        else:
            steps = STEPS if self.x.size < MANY else FEW
            near = {"y": self.y, "noise": self.noise, "step": step, "steps": steps}
            found = slope(self.value, self.x, v, **near)
        # Where y is nothing beside what moves, it may have been rounded to that.
        size = np.abs(v) if v.size == self.y.size else np.max(np.abs(v))
        nothing = np.broadcast_to(4 * self.flat.eps * size, self.y.shape)
        lost = (np.abs(self.y) <= nothing) & (found.size <= nothing)
        return replace(found, error=np.where(lost, nothing, found.error), lost=lost)

    def thin(self, v: np.ndarray) -> Thin | None:
        """The operation on what moves along v, if that is much less than all."""
        return thin(self, v) if self.x.size >= MANY else None

    @cached_property
    def is_local(self) -> bool:
        return is_local(self.flat, self.point)

    def _compare(
        self, part: Part, v: np.ndarray, u: np.ndarray, g: np.ndarray, found: Slope
    ) -> Test:
        terms = np.where(v != 0, g, 0.0) * v
        low, high, error, size = _sums(u, found)
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

    # --- what u and v are made of

    @cached_property
    def scale(self) -> np.ndarray:
        """How far each argument is moved, times the step."""
        x = np.abs(self.x)
        plain = (x > 0) & np.isfinite(x)
        typical = usual(x[plain]) if np.any(plain) else 1.0
        return power_of_two(np.where(plain, x, typical))

    def direction(self) -> np.ndarray:
        """Random signs and magnitudes; few digits, so that x + h v is exact."""
        digits = DIGITS[self.random.integers(0, DIGITS.size, self.x.size)]
        return mirrored(self.scale * digits, self.flat)

    def upstream(self) -> np.ndarray:
        """Random signs and magnitudes, with all digits: what rounds them shows."""
        u = self.random.uniform(-1, 1, self.y.size)
        u += np.copysign(0.75, u)
        return u if self.flat.eps < 2.0**-40 else u.astype(np.float32).astype(float)

    def settled(self, found: Slope) -> np.ndarray:
        """Which outputs are known well enough to say something."""
        with np.errstate(all="ignore"):
            flat = 2**17 * self.flat.eps * np.abs(self.y)  # where y does not change
            allowed = np.maximum(SETTLED * found.size, flat)
            known = found.error <= np.where(np.isfinite(allowed), allowed, 0.0)
        return known if found.lost is None else known | found.lost

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


def _sums(u: np.ndarray, found: Slope) -> tuple[float, float, float, float]:
    """<u, slope>, the least and the most; the norms of its error and of itself."""
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
