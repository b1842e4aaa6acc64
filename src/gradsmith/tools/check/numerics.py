"""Magnitudes, and random numbers with few digits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def largest(x: np.ndarray) -> float:
    """The largest magnitude among the finite elements; 0 if there are none."""
    size = np.abs(x)
    return float(np.max(size, where=np.isfinite(size), initial=0.0))


def norm(x: np.ndarray) -> float:
    """The length of a vector, also of one whose squares are out of range."""
    largest = float(np.max(np.abs(x), initial=0.0))
    if not 0 < largest < np.inf:
        return largest
    return largest * float(np.sqrt(np.sum((x / largest) ** 2)))


def sampled_median(x: np.ndarray) -> float:
    """The median, of a sample if there are many."""
    return float(np.median(x[:: max(1, x.size // 2**15)]))


def power_of_two(x: np.ndarray) -> np.ndarray:
    """The power of two below each positive number.

    >>> power_of_two(np.array([1.0, 3.0, 0.2]))
    array([1.   , 2.   , 0.125])
    """
    return np.exp2(np.floor(np.log2(x)))


def on_grid(x: np.ndarray, eps: float) -> np.ndarray:
    """x with few enough digits that x + h v is exact for all steps h.

    In double precision that error is below what is measured anyway.
    """
    if eps < 2.0**-40:
        return x
    with np.errstate(all="ignore"):
        unit = power_of_two(np.abs(x)) * 2.0**-13
        snapped = np.round(x / unit) * unit
    return np.where(np.isfinite(snapped), snapped, x)


def random_signed(
    random: np.random.Generator, shape: int | Sequence[int]
) -> np.ndarray:
    """Random signs and magnitudes: multiples of 1/4, exact in every dtype."""
    return random.choice([-1.0, 1.0], shape) * random.integers(3, 8, shape) / 4


def jittered(
    random: np.random.Generator, xs: Sequence[np.ndarray], eps: float
) -> list[np.ndarray]:
    """The arrays with their last digits changed, to see what rounding does."""
    return [x * (1 + 2 * eps * random.choice([-1.0, 1.0], x.shape)) for x in xs]
