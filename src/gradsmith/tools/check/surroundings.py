"""A point and what is around it: how an operation changes in any direction."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import numpy as np

from .differences import STEPS, Slope, slope
from .flat import Flat, Point
from .noise import MANY, noise_of
from .scales import on_grid, power_of_two, usual
from .thin import Thin, is_local, thin
from .triangles import mirrored

SETTLED = 1e-3  # the relative error of an output that still tells something
STEP = 0.125
FEW = 4  # steps, for many elements
FINER = 2.0 ** np.array([-10, -20, -30])  # for functions with many waves in a step
STRAIGHT = 1e-8
# What a direction is made of: few digits, and none that are small beside another
DIGITS = np.array([-7, -6, -5, -4, -3, 3, 4, 5, 6, 7]) / 4


class Surroundings:
    """A point: value, rule and noise there, and slopes in all directions."""

    not_finite: np.ndarray

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
