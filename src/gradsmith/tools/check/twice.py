"""The rule as a function of its own, whose gradient is the derivative of the rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .flat import Flat, Layout, Point
from .linear import Arrays
from .native import context, signed


@dataclass(frozen=True)
class Rule:
    """x -> pull_x(u) in vectors, with the derivative of the rule as its gradient."""

    inner: Flat
    arguments: Layout
    x: np.ndarray
    us: Arrays
    gradient: Callable[..., Any]  # of (xs), as the framework's arrays
    twice: Callable[..., Any]  # of (xs, vs): that of <pull_x(u), v> by x and by u

    @classmethod
    def at(cls, f: Flat, random: np.random.Generator) -> Rule:
        problem, arrays, calculus = f.problem, f.problem.arrays, f.problem.calculus
        fn = problem.native
        with context(problem):
            ys = calculus.value(fn, problem.given(f.arguments.arrays(f.x)))
            us = [upstream_like(random, arrays.numpy(y)) for y in ys]
            pairs = zip(us, ys, strict=True)
            dys = [arrays.array(u, arrays.dtype_name(y)) for u, y in pairs]
        return cls(
            f,
            f.arguments,
            f.x,
            us,
            lambda xs: calculus.vjp(fn, xs)[1](dys),
            lambda xs, vs: calculus.second(fn, xs, dys, vs),
        )

    def value(self, x: np.ndarray) -> np.ndarray:
        with context(self.inner.problem):
            return self.arguments.vector(self._back(self.gradient(self._given(x))))

    def linear(self, x: np.ndarray) -> Point:
        return Point(self.value(x), lambda v: self.derived(x, v)[0], self.arguments)

    def derived(self, x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, list]:
        """The gradient of <pull_x(u), v>: by x as a vector, and by each u."""
        with context(self.inner.problem):
            by_x, by_u = self.twice(self._given(x), self._given(v))
            return self.arguments.vector(self._back(by_x)), self._back(by_u)

    def _given(self, x: np.ndarray) -> list[Any]:
        return self.inner.problem.given(self.arguments.arrays(x))

    def _back(self, gradients: list[Any]) -> list:
        numpy = self.inner.problem.arrays.numpy
        return [None if g is None else numpy(g) for g in gradients]

    @property
    def symmetric(self) -> frozenset[str]:
        return self.inner.symmetric

    @property
    def eps(self) -> float:
        return self.inner.eps


def upstream_like(random: np.random.Generator, y: np.ndarray) -> np.ndarray:
    u = signed(random, y.shape)
    return u + 1j * signed(random, y.shape) if np.iscomplexobj(y) else u
