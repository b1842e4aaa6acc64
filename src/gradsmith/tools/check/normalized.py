"""Is a rule that changes the length of its gradient the derivative but for that?

    pull(u) = c(u) J' u

with a number c(u) > 0 that nobody knows, as of J' (u / |u|) or J' u / |J' u|. So the
rule has to be proportional to the slopes in several directions. If it is rows of u that
are divided by their length, all of them have the same one if the elements of u are 1 or
-1, whichever norm it is; if it is rows of the gradient, each has the same length for
all u, and is compared by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .flat import FlatProblem, Part
from .numerics import norm
from .point import SIGMAS, Point

DIRECTIONS = 4
TRIES = 3
BLOCKS = 8  # that are compared, of many
LARGE = 2.0**20  # beside a number that is added to a norm
NORMS = (1, 2, np.inf)
SAME = 1e-5


def is_derivative_but_for_length(
    flat: FlatProblem, random: np.random.Generator
) -> bool:
    """Whether each gradient, or each argument's, or each row, is proportional to it."""
    point = Point(flat, random)
    whole, *others = _blocks(point)
    if _is_proportional(point, whole[0]):
        return True
    return any(
        all(_has_length(point, block) for block in blocks)
        and all(_is_proportional(point, block) for block in blocks)
        for blocks in others
    )


def _blocks(point: Point) -> Iterator[list[np.ndarray]]:
    """The places in the gradient that have a length in common, from coarse to fine."""
    every = np.arange(point.x.size)
    parts = [part for part in point.flat.arguments.parts if part.size]
    yield [every]
    if len(parts) > 1:
        yield [every[part.slice] for part in parts]
    for axis in (-1, 0):
        rows = [row for part in parts for row in _rows(every, part, axis)]
        if rows:
            some = point.random.permutation(len(rows))[:BLOCKS]
            yield [rows[i] for i in some]


def _rows(every: np.ndarray, part: Part, axis: int) -> list[np.ndarray]:
    places = every[part.slice].reshape(*part.shape, 1 + part.is_complex)
    if len(part.shape) < 2 or part.shape[axis] < 2:
        return [places.ravel()]
    axis = axis - 1 if axis < 0 else axis
    return [*np.moveaxis(places, axis, -1).reshape(-1, places.shape[axis])]


def _has_length(point: Point, block: np.ndarray) -> bool:
    """Whether a part of the gradient has the same length for all upstream gradients."""
    us = [LARGE * point.upstream() for _ in range(TRIES)]
    gs = [point.linearization.pull(u)[block] for u in us]
    lengths = np.array([[np.linalg.norm(g, order) for order in NORMS] for g in gs])
    spread = np.ptp(lengths, axis=0)
    return bool(np.any(spread <= SAME * np.max(lengths, axis=0)))


def _is_proportional(point: Point, block: np.ndarray) -> bool:
    chosen = np.zeros(point.x.size, bool)
    chosen[block] = True
    vs = [np.where(chosen, point.direction(), 0.0) for _ in range(DIRECTIONS)]
    slopes = [point.slope(v) for v in vs]
    known = np.logical_and.reduce([point.settled(s) & ~s.kinks for s in slopes])
    if not np.any(known):
        return False
    for _ in range(TRIES):
        u = np.where(known, point.random.choice([-1.0, 1.0], known.size), 0.0)
        g = np.where(chosen, point.linearization.pull(u), 0.0)
        a = np.array([np.sum(g * v) for v in vs])
        rounding = 64 * point.flat.eps * np.array([norm(g * v) for v in vs])
        t = np.array([np.sum(np.where(known, s.low, 0.0) * u) for s in slopes])
        error = np.array([norm(np.where(known, s.error, 0.0)) for s in slopes])
        size = float(t @ t)
        c = float(a @ t) / size if size else 0.0
        if not np.all(np.abs(a - c * t) <= rounding + 2 * c * SIGMAS * error):
            return False
        if c <= 0 and np.any(np.abs(a) > rounding):
            return False
    return True
