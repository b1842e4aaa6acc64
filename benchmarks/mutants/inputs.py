"""What an operation takes: the shape and the domain of each argument."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

SIZES = {"n": 3, "m": 4, "k": 2}
SQUARE = {"n": 4, "m": 4, "k": 4}

Draw = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


@dataclass(frozen=True)
class Arg:
    """One argument; its shape is a word of lengths: "nm", "n1", "" for a scalar.

    Between `low` and `high` every value is in the domain. A structured argument (a
    matrix to be inverted) is in it as a whole, and its elements can't be chosen.
    """

    shape: str
    sampler: Draw
    low: float = -inf
    high: float = inf
    integer: bool = False
    structured: bool = False

    def draw(self, rng: np.random.Generator, shape: str, **sizes: int) -> np.ndarray:
        lengths = {**SIZES, **sizes}
        return self.sampler(rng, tuple(lengths.get(c) or int(c) for c in shape))


def real(shape: str) -> Arg:
    return Arg(shape, lambda rng, lengths: rng.standard_normal(lengths))


def positive(shape: str) -> Arg:
    return Arg(shape, lambda rng, lengths: rng.uniform(0.3, 3.0, lengths), low=0.0)


def nonzero(shape: str) -> Arg:
    """Both signs, away from the pole at zero, which is no point of the domain."""

    def draw(rng: np.random.Generator, lengths: tuple[int, ...]) -> np.ndarray:
        return rng.uniform(0.3, 3.0, lengths) * rng.choice([-1.0, 1.0], lengths)

    return Arg(shape, draw)


def unit(shape: str) -> Arg:
    return Arg(
        shape, lambda rng, lengths: rng.uniform(0.05, 0.95, lengths), low=0, high=1
    )


def between(shape: str, low: float, high: float) -> Arg:
    """Drawn between two bounds, though every value is in the domain."""
    return Arg(shape, lambda rng, lengths: rng.uniform(low, high, lengths))


def index(shape: str, below: int) -> Arg:
    return Arg(
        shape, lambda rng, lengths: rng.integers(below, size=lengths), integer=True
    )


def invertible() -> Arg:
    """A square matrix with a dominant diagonal, hence a determinant above zero."""

    def draw(rng: np.random.Generator, lengths: tuple[int, ...]) -> np.ndarray:
        n = lengths[0]
        return rng.uniform(-1.0, 1.0, lengths) + (n + 1) * np.eye(n)

    return Arg("nn", draw, structured=True)


def definite() -> Arg:
    """A symmetric positive definite matrix."""

    def draw(rng: np.random.Generator, lengths: tuple[int, ...]) -> np.ndarray:
        A = rng.standard_normal(lengths)
        return A @ A.T + lengths[0] * np.eye(lengths[0])

    return Arg("nn", draw, structured=True)


def cast(xs: tuple[np.ndarray, ...], dtype: Any) -> tuple[np.ndarray, ...]:
    """The floating arrays in this dtype; integers as they are."""
    return tuple(x.astype(dtype) if x.dtype.kind == "f" else x for x in xs)
