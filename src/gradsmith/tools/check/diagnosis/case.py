"""A wrong gradient under examination: what is known of it here and at other points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice

import numpy as np

from ..first import Ground
from ..flat import Part
from .elementwise import FEW, is_elementwise
from .evidence import Evidence
from .gather import gather

FEWER = 8  # elements that tell something
OUTPUTS = 2000


@dataclass(frozen=True)
class Case:
    """The gradient of one argument, at the point where it was found wrong."""

    ground: Ground
    part: Part
    random: np.random.Generator
    sharp: bool = False  # the error is small, so that good differences are needed
    separate: bool | None = None  # `elementwise`, if it is known

    @property
    def is_small(self) -> bool:
        return self.part.size <= FEW and self.ground.y.size <= OUTPUTS

    @cached_property
    def elementwise(self) -> bool:
        """Whether each output depends on its own element of the argument alone."""
        if self.separate is not None:
            return self.separate
        return is_elementwise(self.ground, self.part, self.random)

    @cached_property
    def evidence(self) -> Evidence:
        return self.look(self.ground)

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

    def look(self, ground: Ground, columns: np.ndarray | None = None) -> Evidence:
        together = self.elementwise
        rows = None
        if together and columns is not None:
            rows = np.sort(columns) - self.part.start
        return gather(
            ground,
            self.part,
            columns=columns,
            rows=rows,
            elementwise=together,
            sharp=self.sharp,
        )

    def moved(self, x: np.ndarray) -> Ground | None:
        """The ground at another point, if the operation is finite there."""
        try:
            with np.errstate(all="ignore"):
                if not np.all(np.isfinite(self.ground.flat.value(x))):
                    return None
                return Ground(replace(self.ground.flat, x=x), self.random)
        except Exception:  # the operation's own: the point is outside of its domain
            return None

    def looked(
        self, x: np.ndarray, columns: np.ndarray | None = None
    ) -> Evidence | None:
        """What there is to see at another point, if the operation takes it."""
        ground = self.moved(x)
        if ground is None:
            return None
        try:
            found = self.look(ground, columns)
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
        g, t = self.evidence.rule(u), self.evidence.right(u)
        wrong = self.evidence.states(self.random, tries=1) > 0
        with np.errstate(all="ignore"):
            error = np.abs(g - t)[wrong] / np.maximum(np.abs(t), np.abs(g))[wrong]
        error = error[np.isfinite(error)]
        return 0.01 * float(np.median(error)) if error.size else 0.0

    # --- other points

    def elsewhere(self) -> Iterator[Evidence]:
        """Points that differ much, then little."""
        for change in (self.mixed, self.scaled, self.shuffled, self.near):
            found = self.looked(self._in_domain(change(self.ground.x)))
            if found is not None:
                yield found

    def _in_domain(self, x: np.ndarray) -> np.ndarray:
        """Elements whose own output is not finite get their old sign, or value."""
        if not self.elementwise:
            return x
        here = self.part.slice
        for other in (np.copysign(x, self.ground.x), self.near(self.ground.x)):
            try:
                with np.errstate(all="ignore"):
                    bad = ~np.isfinite(self.ground.flat.value(x))
            except Exception:  # the operation's own
                return x
            if not np.any(bad):
                break
            x[here][bad] = other[here][bad]
        return x

    def mixed(self, x: np.ndarray) -> np.ndarray:
        sign = self.random.choice([-1.0, 1.0], x.size)
        return sign * self.scaled(x)

    def scaled(self, x: np.ndarray) -> np.ndarray:
        """Some about 1, one of the argument's at least; some as they are, some much
        smaller, some larger.
        """
        x = self.near(x)
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
        return x + by * self.ground.scale
