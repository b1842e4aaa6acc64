"""A wrong gradient to be diagnosed: what is known of it here and at other points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np

from ..flat import Part
from ..point import Point
from .evidence import Evidence, gather_evidence

FEW = 200  # elements that are compared one by one
FEWER = 8  # elements that tell something
OUTPUTS = 2000


@dataclass(frozen=True)
class Case:
    """The gradient of one argument, at the point where it was found wrong."""

    point: Point
    part: Part
    random: np.random.Generator
    sharp: bool = False  # the error is small, so that good differences are needed
    known_elementwise: bool | None = None  # `elementwise`, if it is known

    @property
    def is_small(self) -> bool:
        return self.part.size <= FEW and self.point.y.size <= OUTPUTS

    @cached_property
    def elementwise(self) -> bool:
        """Whether each output depends only on its own element of the argument."""
        if self.known_elementwise is not None:
            return self.known_elementwise
        return _is_elementwise(self.point, self.part, self.random)

    @cached_property
    def evidence(self) -> Evidence:
        return self.gather(self.point)

    @cached_property
    def fresh(self) -> Evidence | None:
        """At another point, with other signs and magnitudes if they are allowed."""
        return next(self.elsewhere(), None)

    @property
    def points(self) -> list[Evidence]:
        return [self.evidence, *([self.fresh] if self.fresh else [])]

    @cached_property
    def witnesses(self) -> list[Evidence]:
        """More points if few elements tell something: all may be in one region."""
        telling = [np.sum(np.any(each.truth, axis=0)) for each in self.points]
        more = islice(self.elsewhere(), 3 if min(telling) < FEWER else 0)
        return [*self.points, *more]

    def gather(self, point: Point, columns: np.ndarray | None = None) -> Evidence:
        rows = None
        if self.elementwise and columns is not None:
            rows = np.sort(columns) - self.part.start
        return gather_evidence(
            point,
            self.part,
            columns=columns,
            rows=rows,
            elementwise=self.elementwise,
            sharp=self.sharp,
        )

    def point_at(self, x: np.ndarray) -> Point | None:
        """Another point, if the operation is finite there.

        What iterates may never end far from here.
        """
        if self.stays_near and np.any(np.abs(x - self.point.x) > self.point.scale / 2):
            return None
        try:
            with np.errstate(all="ignore"):
                if not np.all(np.isfinite(self.point.flat.value(x))):
                    return None
                return Point(replace(self.point.flat, x=x), self.random)
        except Exception:  # the operation's own: the point is outside of its domain
            return None

    def evidence_at(
        self, x: np.ndarray, columns: np.ndarray | None = None
    ) -> Evidence | None:
        """The evidence at another point, if the operation takes it."""
        point = self.point_at(x)
        if point is None:
            return None
        try:
            found = self.gather(point, columns)
        except Exception:  # as above
            return None
        return found if len(found.rows) else None

    def states(self, found: Evidence, *, tries: int = 3) -> np.ndarray:
        """Wrong (1), right (-1) or neither, with nothing minor taken for wrong."""
        return found.states(self.random, tries=tries, least=self._least)

    @cached_property
    def _least(self) -> float:
        """Far below the usual relative error, something else is in the way."""
        u = self.evidence.upstream(self.random)
        g, t = self.evidence.rule(u), self.evidence.expected(u)
        wrong = self.evidence.states(self.random, tries=1) > 0
        with np.errstate(all="ignore"):
            error = np.abs(g - t)[wrong] / np.maximum(np.abs(t), np.abs(g))[wrong]
        error = error[np.isfinite(error)]
        return 0.01 * float(np.median(error)) if error.size else 0.0

    # --- other points

    def elsewhere(self) -> Iterator[Evidence]:
        """Points that differ much, then little."""
        for change in (self.mixed, self.scaled, self.shuffled, self.near):
            found = self.evidence_at(self._in_domain(change(self.point.x)))
            if found is not None:
                yield found

    def _in_domain(self, x: np.ndarray) -> np.ndarray:
        """Elements whose own output is not finite get their old sign, or value."""
        if not self.elementwise:
            return x
        here = self.part.slice
        for other in (np.copysign(x, self.point.x), self.near(self.point.x)):
            try:
                with np.errstate(all="ignore"):
                    bad = ~np.isfinite(self.point.flat.value(x))
            except Exception:  # the operation's own
                return x
            if not np.any(bad):
                break
            x[here][bad] = other[here][bad]
        return x

    @property
    def stays_near(self) -> bool:
        return self.point.flat.problem.traits.iterates

    def mixed(self, x: np.ndarray) -> np.ndarray:
        if self.stays_near:
            return self.near(x)
        sign = self.random.choice([-1.0, 1.0], x.size)
        return sign * self.scaled(x)

    def scaled(self, x: np.ndarray) -> np.ndarray:
        """Some about 1, at least one of the argument; others equal, smaller, larger."""
        x = self.near(x)
        if self.stays_near:
            return x
        kind = self.random.permutation(x.size) % 4
        kind[self.part.slice] = self.random.permutation(self.part.size) % 4
        small = 10 ** -self.random.uniform(0.5, 3.5, x.size)
        large = self.random.uniform(1.5, 4.0, x.size)
        about_one = np.copysign(np.exp(self.random.uniform(-2.0, 0.9, x.size)), x)
        return np.choose(kind, [about_one, x, x * small, x * large])

    def shuffled(self, x: np.ndarray) -> np.ndarray:
        """In one cycle, so that no element stays where it was."""
        x = self.near(x)
        order = self.part.start + self.random.permutation(self.part.size)
        x[order] = x[np.roll(order, 1)]
        return x

    def near(self, x: np.ndarray) -> np.ndarray:
        """No two elements equal, and none zero."""
        by = self.random.uniform(0.02, 0.1, x.size) * self.random.choice(
            [-1.0, 1.0], x.size
        )
        return x + by * self.point.scale


def _is_elementwise(point: Point, part: Part, random: np.random.Generator) -> bool:
    """Whether outputs change only with their own elements, where some are perturbed."""
    outputs = point.linearization.outputs.parts
    if len(outputs) != 1 or outputs[0].shape != part.shape:
        return False
    if part.is_complex or part.size < 2:
        return False
    moved = np.zeros(part.size, bool)
    for half in _halves(part.size, random):
        x = point.x.copy()
        x[part.slice] += 2.0**-7 * point.scale[part.slice] * half
        with np.errstate(all="ignore"):
            now = ~(point.flat.value(x) == point.y)
        if np.any(now & ~half):
            return False
        moved |= now
    return bool(np.any(moved))


def _halves(n: int, random: np.random.Generator) -> Iterator[np.ndarray]:
    """Halves of the elements, such that any two are apart in one of them.

    Of many elements, one random half is unlikely to miss anything.
    """
    if n > FEW:
        yield random.integers(0, 2, n, dtype=bool)
        return
    for bit in range((n - 1).bit_length()):
        half = (np.arange(n) >> bit & 1).astype(bool)
        yield half
        yield ~half
