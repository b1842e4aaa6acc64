"""The rule as a function of its own, whose gradient is the derivative of the rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .flat import Flat, Layout, Point
from .native import context, signed, staged
from .problem import Arrays


@dataclass(frozen=True)
class Rule:
    """x -> pull_x(u) in vectors, with the derivative of the rule as its gradient."""

    inner: Flat
    arguments: Layout
    x: np.ndarray
    us: Arrays
    gradient: Callable[..., Any]  # of (xs), as the framework's arrays
    by_x: Callable[..., Any]  # of (xs, vs): the gradient of <pull_x(u), v> by x
    by_u: Callable[..., Any]

    @classmethod
    def at(cls, f: Flat, random: np.random.Generator) -> Rule:
        problem, kit, fn = f.problem, f.problem.kit, f.problem.native
        with context(problem):
            ys = kit.value(fn, problem.given(f.arguments.arrays(f.x)))
            us = [upstream_like(random, kit.numpy(y)) for y in ys]
            dys = [kit.array(u, kit.dtype_name(y)) for u, y in zip(us, ys, strict=True)]
        return cls(
            f,
            f.arguments,
            f.x,
            us,
            staged(problem, lambda xs: kit.vjp(fn, xs)[1](dys)),
            staged(problem, lambda xs, vs: kit.hvp(fn, xs, dys, vs)),
            staged(problem, lambda xs, vs: kit.by_upstream(fn, xs, dys, vs)),
        )

    def value(self, x: np.ndarray) -> np.ndarray:
        return self.arguments.vector(self.run(self.gradient, x))

    def linear(self, x: np.ndarray) -> Point:
        def pull(v: np.ndarray) -> np.ndarray:
            return self.arguments.vector(self.run(self.by_x, x, v))

        return Point(self.value(x), pull, self.arguments)

    def run(self, fn: Callable[..., Any], *vectors: np.ndarray) -> list:
        """A function of the framework's arrays on vectors."""
        problem = self.inner.problem
        with context(problem):
            found = fn(*[problem.given(self.arguments.arrays(v)) for v in vectors])
            return [None if g is None else problem.kit.numpy(g) for g in found]

    @property
    def eps(self) -> float:
        return self.inner.eps


def upstream_like(random: np.random.Generator, y: np.ndarray) -> np.ndarray:
    u = signed(random, y.shape)
    return u + 1j * signed(random, y.shape) if np.iscomplexobj(y) else u
