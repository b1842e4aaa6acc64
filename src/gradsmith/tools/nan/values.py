"""A few elements of an array, as a report shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

FEW = 3
KINDS = {"nan": "NaN", "inf": "inf"}  # as a report writes them


@dataclass(frozen=True)
class Value:
    """A few elements of an array: those that matter, with their indices."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    indices: tuple[tuple[int, ...], ...]
    elements: tuple[float | complex, ...]

    def __str__(self) -> str:
        """All of them.

        >>> print(Value("x", (2,), "float64", ((1,),), (0.0,)))
        x[1] = 0.0
        """
        pairs = zip(self.indices, self.elements, strict=True)
        return ", ".join(f"{indexed(self.name, i)} = {written(x)}" for i, x in pairs)


def indexed(name: str, index: Sequence[int]) -> str:
    return f"{name}[{', '.join(map(str, index))}]" if len(index) else name


def written(x: Any) -> str:
    """A number in full if it is short, else in six digits.

    >>> written(0.1), written(1 / 3), written(float("-inf"))
    ('0.1', '0.333333', '-inf')
    """
    if isinstance(x, (complex, bool)):
        return str(x)
    short = repr(float(x))
    return short if len(short) <= 8 else f"{x:.6g}"


def is_bad(x: np.ndarray) -> bool:
    """Whether an array of floating numbers holds NaN or inf."""
    return x.dtype.kind in "fc" and not np.all(np.isfinite(x))


def kind_of(arrays: Sequence[np.ndarray]) -> str:
    """What arrays that are not finite hold: NaN, or else inf."""
    return "nan" if any(np.any(np.isnan(x)) for x in arrays) else "inf"


def bad_indices(
    x: np.ndarray, among: np.ndarray | None = None
) -> list[tuple[int, ...]]:
    """A few places of NaN, or else of inf."""
    wanted = np.isnan(x) if among is None else np.isnan(x) & among
    if not np.any(wanted):
        wanted = ~np.isfinite(x) if among is None else among
    return [_index(i, x.shape) for i in np.flatnonzero(wanted)[:FEW]]


def shown(
    name: str,
    x: np.ndarray,
    at: Sequence[tuple[int, ...]],
    shape: tuple[int, ...] | None = None,
) -> Value:
    """The elements at these indices of an array of this shape, or what stands out."""
    if shape is not None and x.shape != shape:
        at = broadcast(x, at, shape) or _outstanding(x)
    indices = tuple(dict.fromkeys(at))
    elements = tuple(x[i].item() for i in indices)
    return Value(name, x.shape, str(x.dtype), indices, elements)


def broadcast(
    x: np.ndarray, at: Sequence[tuple[int, ...]], shape: tuple[int, ...]
) -> list[tuple[int, ...]]:
    """The indices in an array that is broadcast to a shape; none if it can't be."""
    try:
        if np.broadcast_shapes(x.shape, shape) != shape:
            return []
    except ValueError:
        return []
    return [
        tuple(
            0 if n == 1 else i for i, n in zip(index[-x.ndim :], x.shape, strict=True)
        )
        if x.ndim
        else ()
        for index in at
    ]


def _outstanding(x: np.ndarray) -> list[tuple[int, ...]]:
    """NaN and inf, or else the smallest and the largest element."""
    if x.size == 0:
        return []
    if is_bad(x):
        return bad_indices(x)
    size = np.abs(x).ravel()
    return [
        _index(int(np.argmin(size)), x.shape),
        _index(int(np.argmax(size)), x.shape),
    ]


def _index(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(flat, shape))
