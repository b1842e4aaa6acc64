"""Numbers rounded to another dtype, still in float64."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
