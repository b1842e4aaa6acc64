"""A wrong gradient under examination: what is known of it here and at other points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..first import Ground
from ..flat import Part
from .evidence import Evidence, gather

FEW = 200  # elements that are looked at one by one
OUTPUTS = 2000


@dataclass(frozen=True)
class Case:
    """The gradient of one argument, at the point where it was found wrong."""

    ground: Ground
    part: Part
    random: np.random.Generator
    sharp: bool = False  # the error is small, so that good differences are needed

    @property
    def is_small(self) -> bool:
        return self.part.size <= FEW and self.ground.y.size <= OUTPUTS

    @cached_property
    def elementwise(self) -> bool:
        """Whether each output depends on its own element of the argument alone."""
        outputs = self.ground.point.outputs.parts
        if len(outputs) != 1 or outputs[0].shape != self.part.shape:
            return False
        if self.part.is_complex or self.part.size < 2:
            return False
        half = self.random.permutation(self.part.size) % 2 == 0
        x = self.ground.x.copy()
        x[self.part.slice] += 2.0**-7 * self.ground.scale[self.part.slice] * half
        with np.errstate(all="ignore"):
            y = self.ground.flat.value(x)
        moved = ~(y == self.ground.y)
        return not np.any(moved & ~half) and bool(np.any(moved))

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

    def at(self, values: np.ndarray) -> Ground | None:
        """The ground with other values of the argument, if the operation has one."""
        x = self.ground.x.copy()
        x[self.part.slice] = values
        return self.moved(x)

    def moved(self, x: np.ndarray) -> Ground | None:
        """The ground at another point, if the operation is finite there."""
        with np.errstate(all="ignore"):
            if not np.all(np.isfinite(self.ground.flat.value(x))):
                return None
            return Ground(replace(self.ground.flat, x=x), self.random)

    # --- other points

    def elsewhere(self) -> Iterator[Evidence]:
        """Points that differ much, then little."""
        for change in (self.mixed, self.scaled, self.shuffled, self.near):
            ground = self.moved(change(self.ground.x))
            if ground is None:
                continue
            found = self.look(ground)
            if len(found.rows):
                yield found

    def mixed(self, x: np.ndarray) -> np.ndarray:
        sign = self.random.choice([-1.0, 1.0], x.size)
        return sign * self.scaled(x)

    def scaled(self, x: np.ndarray) -> np.ndarray:
        """A third of it as it is, a third much smaller, a third larger."""
        x = self.near(x)
        kind = self.random.permutation(x.size) % 3
        small = 10 ** -self.random.uniform(0.5, 3.5, x.size)
        return x * np.choose(kind, [1.0, small, self.random.uniform(1.5, 4.0, x.size)])

    def shuffled(self, x: np.ndarray) -> np.ndarray:
        x = self.near(x)
        part = x[self.part.slice]
        x[self.part.slice] = part[self.random.permutation(part.size)]
        return x

    def near(self, x: np.ndarray) -> np.ndarray:
        """No two elements equal, and none zero."""
        by = self.random.uniform(0.02, 0.1, x.size) * self.random.choice(
            [-1.0, 1.0], x.size
        )
        return x + by * self.ground.scale
