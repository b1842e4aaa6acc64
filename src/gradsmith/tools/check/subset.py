"""A large operation on a few of its elements, if each output has elements of its own.

The effect of a few elements is then seen without all the others. That it is so, and
that the operation gives the same for few as for many, is tested, not assumed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import trees
from .differences import Slope, slope
from .flat import FlatLinearization, FlatProblem

if TYPE_CHECKING:
    from .point import Point

FEWER = 16  # times fewer elements are few
ALIKE = 4.0  # roundings


@dataclass(frozen=True)
class Subset:
    """The operation on a few elements: their places in x, and in y."""

    value: Callable[[np.ndarray], np.ndarray]
    places: np.ndarray
    outputs: np.ndarray
    x: np.ndarray
    y: np.ndarray
    noise: np.ndarray
    size: int  # of all outputs

    def expanded(self, y: np.ndarray) -> np.ndarray:
        """Values for all outputs, from those for a few: the others are zero."""
        every = np.zeros(self.size)
        every[self.outputs] = y
        return every

    def slope(self, v: np.ndarray, noise: np.ndarray, **steps: Any) -> Slope:
        """Of all outputs; those that don't change are known up to their noise."""
        found = slope(
            self.value, self.x, v[self.places], y=self.y, noise=self.noise, **steps
        )
        parts = (found.low, found.high, found.error, found.bend)
        low, high, error, bend = map(self.expanded, parts)
        still = np.ones(self.size, bool)
        still[self.outputs] = False
        return Slope(low, high, np.where(still, noise / steps["step"], error), bend)


def subset_along(point: Point, v: np.ndarray) -> Subset | None:
    """The operation on the elements that v perturbs; None if they are not few."""
    moved = np.flatnonzero(v)
    if FEWER * moved.size > v.size or not moved.size or not point.is_elementwise:
        return None
    arguments, outputs = point.flat.arguments.parts, point.linearization.outputs.parts
    n = arguments[0].size
    which = np.unique(moved % n)
    places = np.concatenate([part.start + which for part in arguments])
    to = np.concatenate([part.start + which for part in outputs])

    def value(x: np.ndarray) -> np.ndarray:
        try:
            ys = point.flat.problem.value(np.split(x, len(arguments)))
            return np.concatenate([y.reshape(which.size) for y in ys])
        except Exception:  # as the whole: outside of its domain
            return np.full(to.size, np.nan)

    x, noise = point.x[places], point.noise[to]
    y = value(x)
    with np.errstate(all="ignore"):
        alike = np.abs(y - point.y[to]) <= ALIKE * noise
    if not np.all(alike | ~np.isfinite(point.y[to])):
        return None
    return Subset(value, places, to, x, y, noise, point.y.size)


def is_elementwise(flat: FlatProblem, linearization: FlatLinearization) -> bool:
    """Whether each output depends only on its own element of the arguments."""
    arguments = flat.arguments.parts
    parts = (*arguments, *linearization.outputs.parts)
    arrays = [x for x in trees.leaves(flat.problem.inputs) if isinstance(x, np.ndarray)]
    if len({part.shape for part in parts}) > 1 or len(arrays) > len(arguments):
        return False
    if any(part.is_complex for part in parts) or flat.symmetric:
        return False
    if flat.problem.is_random or flat.problem.declares:
        return False  # fewer elements draw other numbers
    moves = np.arange(flat.x.size) % arguments[0].size % 3 == 0
    still = ~moves[: arguments[0].size]
    x = np.where(moves, 1.25 * flat.x, flat.x)
    try:
        y = flat.value(x)
    except Exception:
        return False
    pairs = (each.reshape(-1, still.size)[:, still] for each in (y, linearization.y))
    return np.array_equal(*pairs, equal_nan=True)
