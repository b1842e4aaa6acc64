"""Partial derivatives of float32 and float16 that are computed in float64.

Some have no formula in their own precision that keeps its digits: exp(-x*x) loses as
many as x*x has before the point, and x2 - 1 in x1**(x2 - 1) is rounded as coarsely. In
float64 29 more bits are there to lose, and the result is rounded once. float64 itself
is computed as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

NARROW = "ef"  # the characters of float16 and float32
# Elements at a time. Their float64 stay in the cache, and are too small for memory that
# the system hands out anew: exp(-x*x) of 1e6 takes 1.9 ms, all at once 6.0.
BLOCK = 12288


def in_float64(partial: Callable[..., Any]) -> Callable[..., Any]:
    """A partial that computes in float64 what is given in less.

    It may be written in any functions that have rules, and so may be differentiated
    again: changes of dtype have one, too.
    """

    @wraps(partial)
    def widened(*args: Any) -> Any:
        if not any(map(_has_less, args)):
            return partial(*args)
        dtype = _dtype_of(args)
        if _is_large(args):
            return _by_blocks(partial, args, dtype)
        return partial(*[widen(x) for x in args]).astype(dtype)

    return widened


def is_narrow(*xs: Any) -> bool:
    """Whether these arrays have together less precision than float64."""
    dtype = _dtype_of(xs)
    return dtype is not None and dtype.char in NARROW


def is_coarse(y: Any) -> bool:
    """Whether a result in less than float64 may be subnormal, infinite or NaN.

    It has too few digits then to compute a derivative from. Of a tensor that is not
    known.
    """
    if y.dtype.char not in NARROW:
        return False
    if type(y) is not np.ndarray:
        return True
    low, high = _NORMAL[y.dtype.char]
    size = np.abs(y)
    return not (size.size == 0 or (np.min(size) >= low and np.max(size) <= high))


_NORMAL = {
    kind: (float(np.finfo(kind).smallest_normal), float(np.finfo(kind).max))
    for kind in NARROW
}


def widen(x: Any) -> Any:
    """x in float64, if it is an array of float32 or float16."""
    return x.astype(np.float64) if _has_less(x) else x


def _has_less(x: Any) -> bool:
    return hasattr(x, "dtype") and x.dtype.char in NARROW


def _dtype_of(args: Sequence[Any]) -> Any:
    """The dtype that the arrays among the arguments have together."""
    if len(args) == 1:
        return getattr(args[0], "dtype", None)
    dtypes = [x.dtype for x in args if hasattr(x, "dtype")]
    return np.result_type(*dtypes) if dtypes else None


def _is_large(args: Sequence[Any]) -> bool:
    """Whether these are plain arrays of one shape which are worth being cut."""
    arrays = [x for x in args if hasattr(x, "dtype")]
    shape = arrays[0].shape
    return arrays[0].size > BLOCK and all(
        type(x) is np.ndarray and x.shape == shape and x.flags.c_contiguous
        for x in arrays
    )


def _by_blocks(partial: Callable[..., Any], args: Sequence[Any], dtype: Any) -> Any:
    flat = [x.reshape(-1) if hasattr(x, "dtype") else x for x in args]
    shape, n = next((x.shape, x.size) for x in args if hasattr(x, "dtype"))
    y = np.empty(shape, dtype)
    out = y.reshape(-1)
    for i in range(0, n, BLOCK):
        at = slice(i, i + BLOCK)
        out[at] = partial(*[widen(x[at]) if hasattr(x, "dtype") else x for x in flat])
    return y
