"""A point at which the rule is compared with differences.

First order: is <pull(u), v> the derivative of <u, f> along v? Both sides are numbers,
whatever the size of the arrays, and the signs of u and v are random, so that a wrong
element shows whatever the others are. Small ones are made visible too:

- u is scaled such that each output counts the same, and omits those outputs whose
  differences have not settled;
- arguments whose share in the result is below what can be seen are perturbed once more,
  without the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np

from .comparison import Comparison, weighted_slope
from .differences import STEPS, Slope, slope
from .flat import (
    FlatLinearization,
    FlatProblem,
    Part,
    symmetrized,
    with_mirror_images,
)
from .noise import MANY, noise_of
from .numerics import (
    change_within,
    largest,
    norm,
    on_grid,
    power_of_two,
    sampled_median,
)
from .subset import Subset, is_elementwise, subset_along

SIGMAS = 8.0  # how many of its errors a sum may be off
SHARP = 1e4  # an output this much less certain than the median is omitted
FEW_DIGITS = 2.0**-33  # what a rule may lose by rounding, at most
FLOAT32 = 2.0**-20  # the same in float32, whatever the dtype of the inputs
HIDDEN = 1e3  # what is that close to the resolution would not be seen
SEVERAL = 4  # arguments, which take long one by one
GROUPS = 3  # of elements, each hidden by those before
SETTLED = 1e-3  # the relative error of an output that still tells something
STEP = 0.125
FEW_STEPS = 4  # for many elements
FINER = 2.0 ** np.array([-10, -20, -30])  # for functions with many waves in a step
STRAIGHT = 1e-8
HALVES, UNBROKEN = 36, 2.0**-30
# The elements of a direction: few digits, and none that are small beside another
DIGITS = np.array([-7, -6, -5, -4, -3, 3, 4, 5, 6, 7]) / 4


class Point:
    """Value, rule and noise at a point, and slopes in all directions."""

    not_finite: np.ndarray

    def __init__(self, flat: FlatProblem, random: np.random.Generator) -> None:
        self.random = random
        self.x = on_grid(flat.x, flat.eps)
        self.flat = flat.about(self.x)
        self.linearization: FlatLinearization = flat.linearize(self.x)
        self.y = self.linearization.y
        self.noise = noise_of(self.value, self.x, self.y, eps=flat.eps, random=random)
        # Where a gradient was not finite; other upstream gradients may add more.
        self.not_finite = ~np.isfinite(self.linearization.pull(self.upstream()))

    def value(self, x: np.ndarray) -> np.ndarray:
        """f(x) near the point; NaN where the operation fails, outside of its domain."""
        try:
            return self.flat.value(x)
        except Exception:
            return np.full(self.y.shape, np.nan)

    # --- comparisons

    def comparisons(
        self,
        *,
        even: bool = False,
        jointly: bool = False,
        done: Callable[[str], bool] = lambda name: False,
    ) -> Iterator[Comparison]:
        """The comparisons for each argument, until enough is known of it.

        Also with equal elements perturbed alike, of one argument or of several. Many
        arguments may be compared jointly: each by itself only if that is wrong.
        """
        together = self._together(even) if jointly else []
        yield from together
        for part in () if together else self.flat.arguments.parts:
            for comparison in self._of(part, even):
                if done(part.name):
                    break
                yield comparison
        elements, names = self._ties() if self.x.size < MANY else (None, ())
        if elements is None or np.any(self.not_finite[elements]):
            return
        every = Part(" and ".join(names), 0, self.x.shape)
        for comparison in self.along(every, elements, even=True):
            if any(map(done, (*names, every.name))):
                break
            yield comparison

    def _together(self, even: bool) -> list[Comparison]:
        """All arguments at once; nothing if they are few, or if that is not enough."""
        if len(self.flat.arguments.parts) < SEVERAL or self.flat.symmetric:
            return []
        found = [*self._of(Part("all arguments", 0, self.x.shape), even)]
        enough = any(each.says_something for each in found)
        return found if enough and not any(each.is_wrong for each in found) else []

    def _of(self, part: Part, even: bool) -> Iterator[Comparison]:
        chosen = np.zeros(self.x.size, bool)
        chosen[part.slice] = np.isfinite(self.x[part.slice])
        if even:
            yield from self.along(part, chosen, even=True)
        for _ in range(GROUPS):
            if not np.any(chosen):
                break
            found = []
            for comparison in self.along(part, chosen):
                found.append(comparison)
                yield comparison
            chosen = self._hidden(found, chosen)

    def _ties(self) -> tuple[np.ndarray | None, tuple[str, ...]]:
        """The elements that equal one of another argument, and these arguments.

        Where max(a, b) has a = b, each of the two may have any share of the gradient,
        but both together have one gradient to share. That shows if they are perturbed
        together.
        """
        parts = self.flat.arguments.parts
        if len(parts) < 2 or self.flat.symmetric:
            return None, ()
        values, which = np.unique(self.x, return_inverse=True)
        seen = np.zeros((len(parts), values.size), bool)
        for flags, part in zip(seen, parts, strict=True):
            flags[which[part.slice]] = True
        several = (np.sum(seen, axis=0) > 1) & np.isfinite(values)
        if not np.any(several):
            return None, ()
        pairs = zip(parts, seen, strict=True)
        names = [part.name for part, flags in pairs if np.any(flags & several)]
        return several[which], tuple(names)

    def along(
        self,
        part: Part,
        chosen: np.ndarray,
        step: float = STEP,
        even: bool = False,
        among: np.ndarray | None = None,
    ) -> Iterator[Comparison]:
        """The comparisons for some elements of an argument, and some of the outputs."""
        v = self.direction()
        if even:  # what is equal stays equal
            first, which = np.unique(self.x, return_index=True, return_inverse=True)[1:]
            v = symmetrized(v[first][which], self.flat)
        v = np.where(chosen & ~self.not_finite, v, 0.0)
        for comparison in self._along(part, v, step, among):
            yield replace(comparison, even=even)

    def within(
        self, part: Part, tangent: Callable[[np.ndarray], np.ndarray]
    ) -> Iterator[Comparison]:
        """The comparisons in directions that keep the structure of an argument."""
        v = np.zeros(self.x.size)
        v[part.slice] = np.ravel(tangent(part.array(self.direction())))
        yield from self._along(part, np.where(self.not_finite, 0.0, v), STEP, None)

    def scaled(self, part: Part, other: Part) -> Iterator[Comparison]:
        """The comparisons in directions that scale two arguments alike."""
        v, r = np.zeros(self.x.size), self.random.choice(DIGITS, part.shape)
        try:
            every = np.broadcast_to(r, other.shape)
        except ValueError:
            every = r = self.random.choice(DIGITS)
        for one, factors in ((part, r), (other, every)):
            v[one.slice] = np.ravel(one.array(self.x) * factors)
        yield from self._along(part, np.where(self.not_finite, 0.0, v), STEP, None)

    def again(
        self, comparison: Comparison, step: float, among: np.ndarray
    ) -> Iterator[Comparison]:
        """The same with fresh directions, and with an error for the rule's rounding."""
        chosen = comparison.v != 0
        for each in self.along(comparison.part, chosen, step, comparison.even, among):
            lost = self._lost_digits(each) if self._is_rounding(each) else 0.0
            yield replace(each, error=each.error + lost)

    def _is_rounding(self, compared: Comparison) -> bool:
        """Whether what differs is so little that the rule may have lost it by rounding.

        Terms as large as the value may cancel: beside it the gradient is nothing then.
        In float32 only these lose more than it has digits; a rule that loses no more
        than that of the gradient itself has been computed in too few digits.
        """
        gap, scale = compared.gap, compared.scale
        value = norm(np.where(compared.u != 0, self.y, 0.0) * compared.u)
        cancelled = FLOAT32 * scale < gap < FLOAT32 * value
        return compared.is_wrong and (cancelled or gap < FEW_DIGITS * max(scale, value))

    def _lost_digits(self, compared: Comparison) -> float:
        """What the rule loses by rounding: multiples of u show it."""
        lost, v, pull = 0.0, compared.v, self.linearization.pull
        for k in (1.1, 1.3, 1.7):
            terms = np.where(v != 0, pull(k * compared.u), 0.0) * v / k
            lost = max(lost, norm(np.nan_to_num(terms - compared.terms)))
        return SIGMAS * lost

    def _along(
        self, part: Part, v: np.ndarray, step: float, among: np.ndarray | None
    ) -> Iterator[Comparison]:
        if not np.any(v):
            return
        found = self.slope(v, step)
        for u in self._weights(found, among):
            if not np.any(u):
                continue
            g = self.linearization.pull(u)
            bad = ~np.isfinite(g) & (v != 0)
            if np.any(bad):
                self.not_finite |= bad
                yield from self._along(part, np.where(bad, 0.0, v), step, among)
                return
            yield self._compare(part, v, u, g, found)

    def _compare(
        self, part: Part, v: np.ndarray, u: np.ndarray, g: np.ndarray, found: Slope
    ) -> Comparison:
        terms = np.where(v != 0, g, 0.0) * v
        low, high, error, size = weighted_slope(u, found)
        return Comparison(
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

    def _hidden(self, compared: list[Comparison], chosen: np.ndarray) -> np.ndarray:
        """Those of the elements whose share is too small for any comparison to see."""
        hidden = chosen & ~self.not_finite
        for each in compared:
            hidden &= np.abs(each.terms) < HIDDEN * each.error / np.sqrt(hidden.size)
        hidden = with_mirror_images(hidden, self.flat)
        # If all of them are hidden, perturbing them once more would show no more.
        return np.zeros_like(chosen) if np.array_equal(hidden, chosen) else hidden

    # --- slopes

    def slope(self, v: np.ndarray, step: float = STEP) -> Slope:
        """By differences; once more with smaller steps, where most don't settle."""
        found = self._slope(v, step)
        for finer_step in step * FINER:
            if 2 * np.count_nonzero(self.settled(found)) >= found.error.size:
                break
            finer = self._slope(v, finer_step)
            # Straight at once, where the larger steps are not: one step of a staircase,
            # or a piece between kinks, which the maximum of many has nearby
            straight = finer.bend <= STRAIGHT * finer.size
            if np.any(straight & (finer.size > 0)) and self._is_continuous(v, step):
                straight &= finer.size == 0
            error = np.where(straight, np.inf, finer.error)
            found = found.or_better(replace(finer, error=error))
        return found

    def _is_continuous(self, v: np.ndarray, step: float) -> bool:
        """Whether the value has no jumps along v; of many elements that is not tried.

        Even those of float32's digits would be seen, among the digits of float64.
        """
        if self.x.size >= MANY:
            return False
        at = lambda t: self.value(self.x + t * v)
        y = at(step)
        left = change_within(at, 0.0, step, self.y, y, HALVES)
        return left <= largest(y - self.y) * UNBROKEN

    def _slope(self, v: np.ndarray, step: float) -> Slope:
        few = self.subset(v)
        if few is not None:
            found = few.slope(v, self.noise, step=step)
        else:
            steps = STEPS if self.x.size < MANY else FEW_STEPS
            near = {"y": self.y, "noise": self.noise, "step": step, "steps": steps}
            found = slope(self.value, self.x, v, **near)
        # Where y is nothing beside what changes, it may have been rounded to that.
        size = np.abs(v) if v.size == self.y.size else np.max(np.abs(v))
        nothing = np.broadcast_to(4 * self.flat.eps * size, self.y.shape)
        lost = (np.abs(self.y) <= nothing) & (found.size <= nothing)
        return replace(found, error=np.where(lost, nothing, found.error), lost=lost)

    def central_difference(
        self, v: np.ndarray, h: float, away: np.ndarray | float = 0.0
    ) -> np.ndarray:
        """One difference along v with the step h, at the point or a bit beside it."""
        f, x, few = self.value, self.x + away, self.subset(v)
        if few is None:
            return (f(x + h * v) - f(x - h * v)) / (2 * h)
        f, x, v = few.value, x[few.places], v[few.places]
        return few.expanded((f(x + h * v) - f(x - h * v)) / (2 * h))

    def subset(self, v: np.ndarray) -> Subset | None:
        """The operation on the elements that v perturbs, if they are few."""
        return subset_along(self, v) if self.x.size >= MANY else None

    @cached_property
    def is_elementwise(self) -> bool:
        return is_elementwise(self.flat, self.linearization)

    def settled(self, found: Slope) -> np.ndarray:
        """Which outputs are known well enough to say something."""
        with np.errstate(all="ignore"):
            flat = 2**17 * self.flat.eps * np.abs(self.y)  # where y does not change
            allowed = np.maximum(SETTLED * found.size, flat)
            known = found.error <= np.where(np.isfinite(allowed), allowed, 0.0)
        return known if found.lost is None else known | found.lost

    # --- directions v and upstream gradients u

    @cached_property
    def scale(self) -> np.ndarray:
        """How far each argument is perturbed, times the step."""
        x = np.abs(self.x)
        plain = (x > 0) & np.isfinite(x)
        typical = sampled_median(x[plain]) if np.any(plain) else 1.0
        return power_of_two(np.where(plain, x, typical))

    def direction(self) -> np.ndarray:
        """Random signs and magnitudes; few digits, so that x + h v is exact."""
        digits = DIGITS[self.random.integers(0, DIGITS.size, self.x.size)]
        return symmetrized(self.scale * digits, self.flat)

    def upstream(self) -> np.ndarray:
        """Random signs and magnitudes, with all digits: rounding them shows."""
        u = self.random.uniform(-1, 1, self.y.size)
        u += np.copysign(0.75, u)
        return u if self.flat.eps < 2.0**-40 else u.astype(np.float32).astype(float)

    def _weights(self, found: Slope, among: np.ndarray | None) -> Iterator[np.ndarray]:
        """Upstream gradients for settled outputs: as it is, and each output alike."""
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
        known = settled & _sharp(found.error, usual_ones)
        yield np.where(known, self.upstream(), 0.0)
        if not some:
            return
        size = np.maximum(found.size, 1e3 * found.error)
        # What does not change is scaled like the others.
        size = np.where(moves, size, sampled_median(size[moves]))
        known = settled & _sharp(found.error / size, usual_ones)
        yield np.where(known, self.upstream() / power_of_two(size), 0.0)


def _sharp(error: np.ndarray, some: np.ndarray) -> np.ndarray:
    """Not much less certain than the median of some."""
    return error <= SHARP * sampled_median(error[some])
