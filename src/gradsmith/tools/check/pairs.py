"""A gradient in a lower precision beside the one in float64, at the same inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .flat import EPS, Layout, layout_of
from .linear import Arrays, wide
from .native import context, jittered, signed
from .problem import Problem
from .rounding import LARGEST, TINY, rounded
from .scales import norm

ROUNDINGS = 64.0
LOST = 0.5  # relative, in the norm
SAME = 1e-9


class Runs:
    """An operation and its rule in each dtype, for one upstream gradient."""

    def __init__(self, exact: Problem, random: np.random.Generator) -> None:
        self.exact, self.random = exact, random
        self.arguments: Layout = layout_of(exact.moved, exact.xs)
        self.us = [signed(random, y.shape) for y in exact.value(exact.xs)]

    def __call__(
        self, xs: Arrays, dtype: str, us: Arrays | None = None
    ) -> tuple[Arrays, np.ndarray]:
        """The outputs and the gradient."""
        problem, numpy = self.exact.in_dtype(dtype), self.exact.arrays.numpy
        with context(problem):
            us = self.us if us is None else us
            ys, dxs = _both(problem, problem.given(xs), us)
            found = [None if dx is None else wide(numpy(dx)) for dx in dxs]
            return [wide(numpy(y)) for y in ys], self.arguments.vector(found)

    @property
    def is_of_first_degree(self) -> bool:
        """Whether f(c x) = c f(x): the gradient is the same at each scale then.

        So no scale is too large to be looked at. Powers of two cost no digits.
        """
        with np.errstate(all="ignore"):
            y = self._value(1.0)
            return bool(np.any(y)) and all(
                norm(self._value(c) - c * y) <= SAME * norm(c * y)
                for c in (2.0**8, 2.0**-8)
            )

    def _value(self, scale: float) -> np.ndarray:
        ys = self.exact.value([x * scale for x in self.exact.xs])
        return np.concatenate([np.ravel(y) for y in ys])


def _both(problem: Problem, xs: list[Any], us: Arrays) -> Any:
    arrays = problem.arrays
    ys, pull = problem.calculus.vjp(problem.native, xs)
    pairs = zip(us, ys, strict=True)
    return ys, pull([arrays.array(u, arrays.dtype_name(y)) for u, y in pairs])


@dataclass(frozen=True)
class Pair:
    """A gradient in a dtype and in float64."""

    runs: Runs
    dtype: str
    xs: Arrays
    g: np.ndarray
    g64: np.ndarray

    @property
    def overflows(self) -> np.ndarray:
        """The elements that are NaN or infinite, and needn't be."""
        fits = np.isfinite(self.g64) & (np.abs(self.g64) < LARGEST[self.dtype] / 8)
        return fits & ~np.isfinite(self.g)

    def lost(self) -> float | None:
        """The error if no digit is right, and rounding the inputs is no excuse."""
        if not (np.all(np.isfinite(self.g)) and np.all(np.isfinite(self.g64))):
            return None
        size, error = norm(self.g64), norm(self.g - self.g64)
        if error <= LOST * size or np.max(np.abs(self.g64)) < TINY[self.dtype]:
            return None
        for _ in range(2):
            xs = jittered(self.runs.random, self.xs, EPS[self.dtype])
            moved = self.runs(xs, "float64")[1] - self.g64
            if error <= ROUNDINGS * norm(moved):
                return None
        return error / size


def pair_of(runs: Runs, xs: Arrays, dtype: str, *, finite: bool = True) -> Pair | None:
    """The two gradients; None where a value is not finite.

    Without `finite` there is None for a finite gradient too: it costs half.
    """
    xs = rounded(xs, dtype)
    with np.errstate(all="ignore"):
        ys, g = runs(xs, dtype)
        if not (g.size and _all_finite([*xs, *ys])):
            return None
        if not finite and np.all(np.isfinite(g)):
            return None
        exact, g64 = runs(xs, "float64")
        if not _all_finite(exact) or _are_others(ys, exact):
            return None
        return Pair(runs, dtype, xs, g, g64)


def _are_others(ys: Arrays, exact: Arrays) -> bool:
    """Whether the values have no digit in common: random ones depend on the dtype."""
    pairs = list(zip(ys, exact, strict=True))
    error = norm(np.array([norm(np.abs(a - b)) for a, b in pairs]))
    return error > LOST * norm(np.array([norm(np.abs(b)) for b in exact]))


def _all_finite(arrays: Arrays) -> bool:
    return all(np.all(np.isfinite(x)) for x in arrays)
