"""The rule as a function of its own, whose gradient is the derivative of the rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .flat import Flat, Layout, Point
from .native import context, signed
from .problem import Arrays


@dataclass(frozen=True)
class Rule:
    """x -> pull_x(u) in vectors, with the derivative of the rule as its gradient."""

    inner: Flat
    arguments: Layout
    x: np.ndarray
    us: Arrays
    native_us: list  # the same as the framework's arrays

    @classmethod
    def at(cls, f: Flat, random: np.random.Generator) -> Rule:
        problem, kit = f.problem, f.problem.kit
        with context(problem):
            ys = kit.value(problem.native, problem.given(f.arguments.arrays(f.x)))
            us = [upstream_like(random, kit.numpy(y)) for y in ys]
            native = [
                kit.array(u, kit.dtype_name(y)) for u, y in zip(us, ys, strict=True)
            ]
        return cls(f, f.arguments, f.x, us, native)

    def value(self, x: np.ndarray) -> np.ndarray:
        gradients = self.inner.problem.linear(self.arguments.arrays(x)).pull(self.us)
        return self.arguments.vector(gradients)

    def linear(self, x: np.ndarray) -> Point:
        def pull(v: np.ndarray) -> np.ndarray:
            return self.arguments.vector(self.derived(self.inner.problem.kit.hvp, x, v))

        return Point(self.value(x), pull, self.arguments)

    def derived(self, by: Any, x: np.ndarray, v: np.ndarray) -> list:
        """The gradient of <pull_x(u), v>, by x or by u."""
        problem, arrays = self.inner.problem, self.arguments.arrays
        with context(problem):
            xs, vs = problem.given(arrays(x)), problem.given(arrays(v))
            found = by(problem.native, xs, self.native_us, vs)
            return [None if g is None else problem.kit.numpy(g) for g in found]

    @property
    def eps(self) -> float:
        return self.inner.eps


def upstream_like(random: np.random.Generator, y: np.ndarray) -> np.ndarray:
    u = signed(random, y.shape)
    return u + 1j * signed(random, y.shape) if np.iscomplexobj(y) else u
