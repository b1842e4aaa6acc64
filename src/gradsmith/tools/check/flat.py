"""A problem as a function from one real vector to another.

All arguments one after the other are x, all outputs y; a complex element is two real
ones. With gradients in the convention dL/dRe + i dL/dIm, <gradient, direction> is then
the plain product of vectors, also for complex arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .declared import factored
from .numerics import largest
from .problem import Arrays, Problem


@dataclass(frozen=True)
class Part:
    """The place of one array in the vector."""

    name: str
    start: int
    shape: tuple[int, ...]
    is_complex: bool = False

    @property
    def size(self) -> int:
        return int(np.prod(self.shape)) * (1 + self.is_complex)

    @property
    def slice(self) -> slice:
        return slice(self.start, self.start + self.size)

    def array(self, vector: np.ndarray) -> np.ndarray:
        """The array in a vector."""
        part = np.ascontiguousarray(vector[self.slice])
        return (part.view(complex) if self.is_complex else part).reshape(self.shape)

    def index(self, i: int) -> tuple[int, ...]:
        """The index in the array of an element of the vector."""
        place = (i - self.start) // (1 + self.is_complex)
        return tuple(int(k) for k in np.unravel_index(place, self.shape))


@dataclass(frozen=True)
class VectorLayout:
    """How arrays lie in a vector."""

    parts: tuple[Part, ...]

    @property
    def size(self) -> int:
        return sum(part.size for part in self.parts)

    def arrays(self, vector: np.ndarray) -> Arrays:
        return [part.array(vector) for part in self.parts]

    def vector(self, arrays: Sequence[np.ndarray | None]) -> np.ndarray:
        """The vector of some arrays, perhaps of their memory; None is zero."""
        pieces = [
            np.zeros(part.size) if x is None else _reals(x, part)
            for part, x in zip(self.parts, arrays, strict=True)
        ]
        if len(pieces) == 1:
            return pieces[0]
        return np.concatenate(pieces) if pieces else np.zeros(0)

    def part_of(self, i: int) -> Part:
        return next(p for p in self.parts if p.start <= i < p.start + p.size)


def vector_layout(names: Sequence[str], arrays: Sequence[np.ndarray]) -> VectorLayout:
    """The layout of some arrays."""
    parts, start = [], 0
    for name, x in zip(names, arrays, strict=True):
        parts.append(Part(name, start, x.shape, np.iscomplexobj(x)))
        start += parts[-1].size
    return VectorLayout(tuple(parts))


def _reals(x: np.ndarray, part: Part) -> np.ndarray:
    if part.is_complex:
        found = np.ascontiguousarray(x, complex).reshape(-1).view(float)
    else:
        found = np.ravel(np.real(x)).astype(float, copy=False)
    if found.size != part.size:  # a framework may take any
        shapes = f"{x.shape} for {part.name} of shape {part.shape}"
        raise ValueError(f"an array of shape {shapes}")
    return found


@dataclass(frozen=True)
class FlatLinearization:
    """The outputs at a point, and the rule there."""

    y: np.ndarray
    pull: Callable[[np.ndarray], np.ndarray]
    outputs: VectorLayout


@dataclass(frozen=True)
class FlatProblem:
    """The problem in vectors, about the point x."""

    problem: Problem
    arguments: VectorLayout
    x: np.ndarray
    factored: Problem | None = None  # without the surrogates that it declares

    def about(self, x: np.ndarray) -> FlatProblem:
        """With values that declared surrogates are no part of, about a point."""
        if not self.problem.declares:
            return self
        other = factored(self.problem, self.arguments.arrays(x))
        return replace(self, factored=other)

    def value(self, x: np.ndarray) -> np.ndarray:
        ys = (self.factored or self.problem).value(self.arguments.arrays(x))
        return vector_layout(_output_names(ys), ys).vector(ys)

    def linearize(self, x: np.ndarray) -> FlatLinearization:
        """Raises what the rule raises, when it is pulled."""
        found = self.problem.linearize(self.arguments.arrays(x))
        outputs = vector_layout(_output_names(found.ys), found.ys)

        def pull(dy: np.ndarray) -> np.ndarray:
            return self.arguments.vector(found.pull(outputs.arrays(dy)))

        def pull_unclipped(dy: np.ndarray) -> np.ndarray:
            assert self.problem.unclipped is not None
            pieces = self.problem.unclipped(dy)
            return np.sum([factor * pull(each) for factor, each in pieces], axis=0)

        pulls = pull if self.problem.unclipped is None else pull_unclipped
        return FlatLinearization(outputs.vector(found.ys), pulls, outputs)

    def jvp(self, x: np.ndarray, dx: np.ndarray) -> np.ndarray:
        arrays = self.arguments.arrays
        dys = self.problem.jvp(arrays(x), arrays(dx))
        return vector_layout(_output_names(dys), dys).vector(dys)

    @property
    def symmetric(self) -> frozenset[str]:
        return self.problem.symmetric

    @property
    def eps(self) -> float:
        """The distance of 1 to the next number in the dtype of the arguments."""
        return max(EPS.get(name, 2.0**-52) for name in self.problem.dtypes)


EPS = {
    "float64": 2.0**-52,
    "complex128": 2.0**-52,
    "float32": 2.0**-23,
    "complex64": 2.0**-23,
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}


def flatten(problem: Problem, xs: Sequence[np.ndarray] | None = None) -> FlatProblem:
    """A problem in vectors, at its own point or another."""
    xs = problem.xs if xs is None else list(xs)
    layout = vector_layout(problem.perturbed, xs)
    return FlatProblem(problem, layout, layout.vector(xs))


def _output_names(ys: Sequence[np.ndarray]) -> list[str]:
    return ["output"] if len(ys) == 1 else [f"output {i}" for i in range(len(ys))]


# --- symmetric matrices of which an operation reads one half
#
# `cholesky` and `eigh` read one triangle only, or the mean of both. Their gradients are
# meant for changes that keep the matrix symmetric: the gradient of an element may stand
# at its mirror image, or half at each. So such arguments are perturbed in symmetric
# directions.

SAME = 1e-9  # relative: the mean of two triangles is rounded


def half_read(problem: Problem) -> frozenset[str]:
    """The names of the arguments of which one triangle is read, or both as one."""
    xs = problem.xs
    return frozenset(
        name
        for i, (name, x) in enumerate(zip(problem.perturbed, xs, strict=True))
        if is_symmetric(x) and _reads_a_half(problem, xs, i)
    )


def symmetrized(v: np.ndarray, flat: Any) -> np.ndarray:
    """A direction of all arguments, symmetric where it has to be."""
    v = v.copy()
    for part in flat.arguments.parts:
        if part.name in flat.symmetric:
            lower = np.tril(part.array(v))
            v[part.slice] = np.ravel(lower + np.swapaxes(np.tril(lower, -1), -1, -2))
    return v


def with_mirror_images(chosen: np.ndarray, flat: Any) -> np.ndarray:
    """Those of the elements that are chosen together with their mirror images."""
    chosen = chosen.copy()
    for part in flat.arguments.parts:
        if part.name in flat.symmetric:
            some = chosen[part.slice].reshape(*part.shape, -1)
            chosen[part.slice] = np.ravel(some & np.swapaxes(some, -2, -3))
    return chosen


def is_symmetric(x: np.ndarray) -> bool:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2] or x.shape[-1] < 2:
        return False
    return np.array_equal(x, np.conj(np.swapaxes(x, -1, -2)))


def _reads_a_half(problem: Problem, xs: Arrays, i: int) -> bool:
    ys = problem.value(xs)
    for changed in _changed_halves(xs[i]):
        others = problem.value([changed if k == i else x for k, x in enumerate(xs)])
        pairs = zip(ys, others, strict=True)
        if all(largest(a - b) <= SAME * largest(a) for a, b in pairs):
            return True
    return False


def _changed_halves(x: np.ndarray) -> Iterator[np.ndarray]:
    upper, lower = np.triu(np.ones(x.shape), 1), np.tril(np.ones(x.shape), -1)
    for half in (upper, lower, upper - lower):
        yield x + half * (0.01 * np.abs(x) + 0.01)
