"""Symmetric matrices of which an operation reads one half.

`cholesky` and `eigh` read one triangle only. Their gradients are meant for changes that
keep the matrix symmetric: the gradient of an element may stand at its mirror image, or
half at each. So such arguments are perturbed in symmetric directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .problem import Arrays, Problem


def half_read(problem: Problem) -> frozenset[str]:
    """The names of the arguments of which one triangle is read."""
    xs = problem.xs
    return frozenset(
        name
        for i, (name, x) in enumerate(zip(problem.perturbed, xs, strict=True))
        if _is_symmetric(x) and _reads_a_half(problem, xs, i)
    )


def symmetrized(v: np.ndarray, flat: Any) -> np.ndarray:
    """A direction of all arguments, symmetric where it has to be."""
    v = v.copy()
    for part in flat.arguments.parts:
        if part.name in flat.symmetric:
            lower = np.tril(part.array(v))
            v[part.slice] = np.ravel(lower + np.swapaxes(np.tril(lower, -1), -1, -2))
    return v


def _is_symmetric(x: np.ndarray) -> bool:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2] or x.shape[-1] < 2:
        return False
    return np.array_equal(x, np.conj(np.swapaxes(x, -1, -2)))


def _reads_a_half(problem: Problem, xs: Arrays, i: int) -> bool:
    ys = problem.value(xs)
    for changed in _changed_halves(xs[i]):
        others = problem.value([changed if k == i else x for k, x in enumerate(xs)])
        if all(map(np.array_equal, ys, others)):
            return True
    return False


def _changed_halves(x: np.ndarray) -> Iterator[np.ndarray]:
    for half in (np.triu(np.ones(x.shape), 1), np.tril(np.ones(x.shape), -1)):
        yield x + half * (0.01 * np.abs(x) + 0.01)
