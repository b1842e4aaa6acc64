"""A gradient in a lower precision beside the one in float64, at the same inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .first import norm
from .flat import EPS, Flat, flat
from .native import jittered, signed
from .problem import Arrays, Problem
from .rounding import LARGEST, TINY, rounded

ROUNDINGS = 64.0
LOST = 0.5  # relative, in the norm


@dataclass(frozen=True)
class Pair:
    """A gradient in a dtype and in float64, at the same inputs."""

    dtype: str
    exact: Flat
    us: Arrays
    g: np.ndarray
    g64: np.ndarray

    @property
    def x(self) -> np.ndarray:
        return self.exact.x

    @property
    def overflows(self) -> np.ndarray:
        """The elements that are NaN or infinite, and needn't be."""
        fits = np.isfinite(self.g64) & (np.abs(self.g64) < LARGEST[self.dtype] / 8)
        return fits & ~np.isfinite(self.g)

    def lost(self, random: np.random.Generator) -> float | None:
        """The error if no digit is right, and rounding the inputs is no excuse."""
        if not (np.all(np.isfinite(self.g)) and np.all(np.isfinite(self.g64))):
            return None
        size = norm(self.g64)
        error = norm(self.g - self.g64)
        if error <= LOST * size or np.max(np.abs(self.g64)) < TINY[self.dtype]:
            return None
        for _ in range(2):
            xs = jittered(random, self.exact.arguments.arrays(self.x), EPS[self.dtype])
            moved = self.exact.problem.linear(xs).pull(self.us)
            if error <= ROUNDINGS * norm(self.exact.arguments.vector(moved) - self.g64):
                return None
        return error / size


def pair_of(
    exact: Problem,
    xs: Arrays,
    dtype: str,
    random: np.random.Generator,
    *,
    finite: bool = True,
) -> Pair | None:
    """The two gradients; None where a value is not finite.

    Without `finite` there is None for a finite gradient too: it costs half.
    """
    xs = rounded(xs, dtype)
    f = flat(exact, xs)
    with np.errstate(all="ignore"):
        low = exact.in_dtype(dtype).linear(xs)
        us = [signed(random, y.shape) for y in low.ys]
        if not (f.x.size and _all_finite([*xs, *low.ys])):
            return None
        g = f.arguments.vector(low.pull(us))
        if not finite and np.all(np.isfinite(g)):
            return None
        high = exact.linear(xs)
        if not _all_finite(high.ys):
            return None
        return Pair(dtype, f, us, g, f.arguments.vector(high.pull(us)))


def _all_finite(arrays: Arrays) -> bool:
    return all(np.all(np.isfinite(x)) for x in arrays)
