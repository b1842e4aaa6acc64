"""Magnitudes, numbers with few digits, and numbers within bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import trees


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


def change_within(
    at: Callable[[float], np.ndarray],
    low: float,
    high: float,
    a: np.ndarray,
    b: np.ndarray,
    halves: int,
) -> float:
    """How much a curve still changes in that half of a half with most of it.

    From a at `low` to b at `high`: little, if it does not jump.
    """
    for _ in range(halves):
        middle = (low + high) / 2
        y = at(middle)
        if largest(y - a) > largest(b - y):
            high, b = middle, y
        else:
            low, a = middle, y
    return largest(b - a)


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


# --- numbers rounded to another dtype, still in float64


LARGEST = {
    "float32": float(np.finfo(np.float32).max),
    "bfloat16": float(np.finfo(np.float32).max),
    "float16": float(np.finfo(np.float16).max),
}
TINY = {
    "float32": float(np.finfo(np.float32).tiny),
    "bfloat16": float(np.finfo(np.float32).tiny),
    "float16": float(np.finfo(np.float16).tiny),
}
FEW = 3  # so many numbers may have few digits by chance


def rounded(xs: Sequence[np.ndarray], dtype: str) -> list[np.ndarray]:
    """The arrays rounded to a dtype.

    >>> rounded([np.array([1.0, 1.001, 0.1])], "bfloat16")
    [array([1.        , 1.        , 0.10009766])]
    """
    return [_rounded(x, dtype) for x in xs]


def _rounded(x: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(all="ignore"):
        if dtype != "bfloat16":
            return x.astype(dtype).astype(float)
        # The upper half of a float32, rounded to the nearest
        bits = np.asarray(x, np.float32).view(np.uint32)
        even = (bits >> 16) & 1
        upper = (bits + np.uint32(0x7FFF) + even) & np.uint32(0xFFFF0000)
        return np.where(np.isfinite(x), upper.view(np.float32), x).astype(float)


def precision_of(gradient: np.ndarray, *, few: int = FEW) -> str | None:
    """The least dtype that holds each number of a float64 gradient exactly.

    None if that is float64, or if there are too few numbers to tell: zeros and powers
    of two are exact in all.

    >>> x = np.array([1/3, 1/5, 1/7, 1/11])
    >>> precision_of(x), precision_of(x.astype(np.float16).astype(float))
    (None, 'float16')
    """
    x = np.asarray(gradient)
    x = np.ravel(x.view(float) if np.iscomplexobj(x) else x).astype(float)
    telling = x[np.isfinite(x) & (np.abs(np.frexp(x)[0]) != 0.5) & (x != 0)]
    if telling.size < few:
        return None
    for dtype in ("bfloat16", "float16", "float32"):
        if np.array_equal(_rounded(telling, dtype), telling):
            return dtype
    return None


# --- values that stay within the bounds of a spec


Bounds = tuple[float | None, float | None]  # low and high


def into_bounds(inputs: Any, bounds: Sequence[Bounds]) -> Any:
    """Inputs whose floating-point arrays are within bounds, one pair for each.

    What is outside is reflected at the bound: signs and magnitudes keep their variety.
    """
    if all(pair == (None, None) for pair in bounds):
        return inputs
    pairs = iter(bounds)

    def leaf(x: Any) -> Any:
        floating = isinstance(x, np.ndarray) and x.dtype.kind in "fc"
        return reflected(x, *next(pairs)) if floating else x

    return trees.map(leaf, inputs)


def reflected(x: np.ndarray, low: float | None, high: float | None) -> np.ndarray:
    """Reflect what is outside of the bounds, as often as it takes.

    >>> reflected(np.array([-3.0, 0.5, 1.25]), 0, 1)
    array([1.  , 0.5 , 0.75])
    """
    if low is not None and high is not None:
        inside = (x >= low) & (x <= high)
        width = high - low
        with np.errstate(all="ignore"):
            beyond = np.mod(x - low, 2 * width) if width else np.zeros_like(x)
        return np.where(inside, x, low + np.minimum(beyond, 2 * width - beyond))
    if low is not None:
        return np.where(x < low, 2 * low - x, x)
    return x if high is None else np.where(x > high, 2 * high - x, x)
