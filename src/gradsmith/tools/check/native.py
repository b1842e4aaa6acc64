"""The problem on the framework's own arrays, for what NumPy's copies don't show.

Who changes an array in place, how an array lies in memory, which dtype a gradient has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from .flat import Layout, layout_of
from .linear import Arrays, wide
from .problem import Problem


@dataclass(frozen=True)
class Native:
    """One evaluation: arguments, outputs, and the rule there."""

    problem: Problem
    xs: list[Any]
    ys: list[Any]
    _pull: Callable[[list[Any]], list[Any]]

    def upstream(self, dys: Sequence[np.ndarray]) -> list[Any]:
        """Upstream gradients as the framework's, in the dtypes of the outputs."""
        arrays = self.problem.arrays
        with context(self.problem):
            return [
                arrays.array(dy, arrays.dtype_name(y))
                for dy, y in zip(dys, self.ys, strict=True)
            ]

    def pull(self, dys: list[Any]) -> list[Any]:
        with context(self.problem):
            return self._pull(dys)

    def numpy(self, arrays: Sequence[Any]) -> Arrays:
        """Copies, in the precision that they have."""
        with context(self.problem):
            return [self.problem.arrays.numpy(x) for x in arrays]

    def vector(self, gradients: Sequence[Any]) -> np.ndarray:
        """All gradients one after the other; None is zero."""
        with context(self.problem):
            numpy = self.problem.arrays.numpy
            copies = [None if g is None else wide(numpy(g)) for g in gradients]
        return self.arguments.vector(copies)

    @property
    def arguments(self) -> Layout:
        return layout_of(self.problem.moved, self.problem.xs)

    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(y.shape) for y in self.ys]


def evaluated(problem: Problem, xs: list[Any]) -> Native:
    """Run the operation on arrays of the framework, recording it."""
    with context(problem):
        ys, pull = problem.calculus.vjp(problem.native, xs)
    return Native(problem, xs, list(ys), pull)


def given(problem: Problem, xs: Sequence[np.ndarray] | None = None) -> list[Any]:
    """New arrays of the framework, at the problem's own point or another."""
    with context(problem):
        return problem.given(problem.xs if xs is None else xs)


def context(problem: Problem) -> AbstractContextManager[Any]:
    """The context in which arrays of the problem's dtypes exist."""
    wide = any(name in ("float64", "complex128") for name in problem.dtypes)
    return problem.arrays.precision("float64" if wide else "float32")


def signed(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Random signs and magnitudes: multiples of 1/4, exact in every dtype."""
    return random.choice([-1.0, 1.0], shape) * random.integers(3, 8, shape) / 4


def jittered(
    random: np.random.Generator, xs: Sequence[np.ndarray], eps: float
) -> Arrays:
    """The arrays with their last digits moved, to see what rounding does."""
    return [x * (1 + 2 * eps * random.choice([-1.0, 1.0], x.shape)) for x in xs]


def reason(error: BaseException) -> str:
    """The first sentence of what an exception says.

    >>> reason(ValueError("no such axis: 7. Shapes are (3,)"))
    'no such axis: 7'
    """
    lines = str(error).strip().splitlines()
    words = re.split(r"\.\s+(?=[A-Z])", lines[0])[0] if lines else ""
    return words[:200].removesuffix(".") or type(error).__name__
