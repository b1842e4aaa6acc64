"""The problem on the framework's own arrays, for what NumPy's copies don't show.

Who changes an array in place, how an array lies in memory, which dtype a gradient has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from .flat import VectorLayout, vector_layout
from .problem import Arrays, Problem


@dataclass(frozen=True)
class NativeEvaluation:
    """One evaluation: arguments, outputs, and the rule there."""

    problem: Problem
    xs: list[Any]
    ys: list[Any]
    _pull: Callable[[list[Any]], list[Any]]

    def upstream(self, dys: Sequence[np.ndarray]) -> list[Any]:
        """Upstream gradients as the framework's arrays, in the outputs' dtypes."""
        with self.problem.precision():
            return self.problem.upstream_like(self.ys, dys)

    def pull(self, dys: list[Any]) -> list[Any]:
        with self.problem.precision():
            return self._pull(dys)

    def numpy(self, arrays: Sequence[Any]) -> Arrays:
        """Copies, in the precision that they have."""
        with self.problem.precision():
            return [self.problem.arrays.numpy(x) for x in arrays]

    def gradient(self, dys: list[Any]) -> np.ndarray:
        """All gradients one after the other; None is zero."""
        gradients = self.pull(dys)
        with self.problem.precision():
            copies = [self.problem.to_numpy(g) for g in gradients]
        return self.arguments.vector(copies)

    @property
    def arguments(self) -> VectorLayout:
        return vector_layout(self.problem.perturbed, self.problem.xs)

    def shapes(self) -> list[tuple[int, ...]]:
        return [tuple(y.shape) for y in self.ys]


def evaluate(problem: Problem, xs: list[Any]) -> NativeEvaluation:
    """Run the operation on arrays of the framework, recording it."""
    with problem.precision():
        ys, pull = problem.calculus.vjp(problem.native, xs)
    calls = count()

    def pull_again(dys: list[Any]) -> list[Any]:
        if next(calls) == 0:
            return pull(dys)
        # On new arrays: the operation may have freed those
        fresh = problem.to_native(problem.xs)
        return problem.calculus.vjp(problem.native, fresh)[1](dys)

    pulls = pull_again if problem.spoils_residuals else pull
    return NativeEvaluation(problem, xs, list(ys), pulls)


def native_inputs(problem: Problem) -> list[Any]:
    """New arrays of the framework, with the problem's own values."""
    with problem.precision():
        return problem.to_native(problem.xs)


def reason(error: BaseException) -> str:
    """The first sentence of what an exception says.

    >>> reason(ValueError("{{node a/b}} no such axis: 7. Shapes are (3,)"))
    'no such axis: 7'
    """
    lines = re.sub(r"\{\{.*?\}\}", "", str(error)).strip().splitlines()
    words = re.split(r"\.\s+(?=[A-Z])", lines[0])[0] if lines else ""
    return words[:200].removesuffix(".") or type(error).__name__
