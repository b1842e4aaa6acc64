"""Elementwise operations: all kinds of values at once, in one long vector."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .linear import Arrays
from .problem import Problem

LARGE = (20.0, 100.0, 750.0, 1e4)


def is_local(problem: Problem, xs: Arrays) -> bool:
    """Whether each element of the output depends on its own of the arguments alone."""
    shapes = {x.shape for x in xs}
    if len(shapes) != 1 or xs[0].size < 4 or any(map(np.iscomplexobj, xs)):
        return False
    moves = np.arange(xs[0].size).reshape(xs[0].shape) % 3 == 0
    ys = problem.value(xs)
    if any(y.shape != xs[0].shape for y in ys):
        return False
    try:
        others = problem.value([np.where(moves, 1.25 * x, x) for x in xs])
    except Exception:
        return False
    pairs = zip(ys, others, strict=True)
    return all(np.array_equal(a[~moves], b[~moves], equal_nan=True) for a, b in pairs)


def pooled(
    problem: Problem, constants: Sequence[float], random: np.random.Generator
) -> Problem | None:
    """One long vector of all kinds of values; several arguments in random pairs.

    None if the operation has another shape in mind.
    """
    xs = problem.xs
    pools = [_pool(x, constants, random) for x in xs]
    if len(xs) > 1:
        pools = [_shuffled(pool, random) for pool in pools]
    try:
        (y, *_) = problem.value(pools)
    except Exception:
        return None
    inside = np.isfinite(y)
    return problem.at_moved([pool[inside] for pool in pools])


def _shuffled(pool: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """In random order, but for some that are zero or alike in all arguments."""
    alike = np.array([0.0, 0.0, 0.5, -0.5, 3.0, -3.0])
    return np.concatenate([random.permutation(np.resize(pool, 512)), alike])


def _pool(
    x: np.ndarray, constants: Sequence[float], random: np.random.Generator
) -> np.ndarray:
    given = x.reshape(-1)[:64]
    spread = 10.0 ** random.uniform(-8, 3, 48)
    near = [c * side for c in constants for side in (0.8, 0.97, 1, 1.03, 1.2)]
    values = np.concatenate([given, spread, random.uniform(0, 8, 48), near, LARGE])
    return np.concatenate([values, -values, [0.0, -0.0]])
