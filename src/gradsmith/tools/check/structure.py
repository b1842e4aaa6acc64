"""The structure of a given array, which inputs that we make up have to keep.

A matrix that was given symmetric stays symmetric, probabilities still add up to 1, and
labels stay labels: of other values nobody asked what the gradient is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Values = Callable[[np.ndarray], np.ndarray]
ENOUGH = 4  # numbers that are not in order, or integers, by chance
CLOSE = 1e-5


@dataclass(frozen=True)
class Structure:
    """What an array is, and how other values become such an array.

    Its last `axes` axes keep their length. `element` is `keep` for single elements,
    where each of them is what it is without the others. `tangent` makes a direction one
    that keeps the structure.
    """

    name: str
    keep: Values
    axes: int = 0
    element: Values | None = None
    tangent: Values | None = None


def structure_of(x: np.ndarray) -> Structure | None:
    """The structure of an array; None if any values would do."""
    if not x.size or not np.all(np.isfinite(x)):
        return None
    return _of_matrix(x) or (None if np.iscomplexobj(x) else _of_rows(x))


def _of_matrix(x: np.ndarray) -> Structure | None:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2] or x.shape[-1] < 2:
        return None
    mirrored = np.conj(np.swapaxes(x, -1, -2))
    if np.allclose(x @ mirrored, np.eye(x.shape[-1]), rtol=0.0, atol=CLOSE):
        return Structure("orthogonal", lambda new: x, 2)
    if np.allclose(x, mirrored, rtol=1e-6, atol=0.0):
        if np.all(np.linalg.eigvalsh(x) > 0):
            return Structure("positive definite", lambda new: x, 2, tangent=symmetric)
        return Structure("symmetric", symmetric, 2, tangent=symmetric)
    for half in (np.tril, np.triu):
        if np.array_equal(x, half(x)):
            return Structure("triangular", half, 2, tangent=half)
    return None


def symmetric(x: np.ndarray) -> np.ndarray:
    """The lower half of a matrix, and its mirror image."""
    lower = np.tril(x)
    return lower + np.conj(np.swapaxes(np.tril(lower, -1), -1, -2))


def _of_rows(x: np.ndarray) -> Structure | None:
    has_rows = x.ndim > 0 and x.shape[-1] > 1
    if np.all((x == 0) | (x == 1)):
        if has_rows and np.all(np.sum(x, -1) == 1):
            return Structure("one-hot", lambda new: x, 1)
        if x.size >= ENOUGH and 0 < np.mean(x) < 1:
            return Structure("zeros and ones", lambda new: x, 0, _bits)
    if has_rows and np.all(x >= 0) and _is_one(np.sum(x, -1)):
        level = lambda v: v - np.mean(v, -1, keepdims=True)
        return Structure("probabilities", _probabilities, 1, tangent=level)
    if has_rows and np.all(x <= 0) and _is_one(np.sum(np.exp(x), -1)):
        return Structure(
            "logarithms of probabilities",
            lambda new: new - np.logaddexp.reduce(new, -1, keepdims=True),
            1,
            tangent=lambda v: v - np.sum(np.exp(x) * v, -1, keepdims=True),
        )
    if has_rows and _is_one(np.sum(x * x, -1)):
        across = lambda v: v - x * np.sum(x * v, -1, keepdims=True)
        return Structure("unit vectors", _unit, 1, tangent=across)
    if x.size >= ENOUGH and np.all(x == np.round(x)) and np.any(np.abs(x) > 1):
        return Structure("integers", np.round, 0, np.round)
    if has_rows and x.shape[-1] >= ENOUGH and np.all(np.diff(x, axis=-1) > 0):
        return Structure("in order", lambda new: np.sort(new, -1))
    return None


def _is_one(x: np.ndarray) -> bool:
    return np.allclose(x, 1, rtol=0, atol=CLOSE)


def _bits(x: np.ndarray) -> np.ndarray:
    return (np.arange(x.size).reshape(x.shape) % 3 == 0).astype(x.dtype)


def _probabilities(x: np.ndarray) -> np.ndarray:
    size = np.abs(x) + np.finfo(float).tiny
    return size / np.sum(size, -1, keepdims=True)


def _unit(x: np.ndarray) -> np.ndarray:
    length = np.sqrt(np.sum(x * x, -1, keepdims=True))
    return np.where(length > 0, x / np.where(length > 0, length, 1.0), x)
