"""Reuse of large arrays' memory.

The system hands out the memory of a large array page by page, and zeroes each page when
it is first touched: at 10**7 float64 that takes as long as the computation. So results of
large elementwise operations are put into memory that was used before and that nobody
holds any more: which is so when the only reference left to it is the pool's own.
"""

from __future__ import annotations

import threading
from sys import getrefcount
from typing import Any

import numpy as np

SMALLEST = 10**6  # bytes; below, the system reuses memory well by itself
LARGEST = 1 << 28  # bytes that a thread's pool holds at most


class _Pool(threading.local):
    """One for each thread, so that two never take the same memory."""

    def __init__(self) -> None:
        self.blocks: list[np.ndarray] = []


_pool = _Pool()


def release_memory() -> None:
    """Give back the memory that this thread keeps for reuse (256 MiB at most)."""
    _pool.blocks.clear()


def computed(ufunc: Any, *xs: Any) -> Any:
    """`ufunc(*xs)`, into reused memory if the result is like the largest argument."""
    like = max(xs, key=_rank)
    if isinstance(ufunc, np.ufunc) and all(_fits(x, like) for x in xs):
        return ufunc(*xs, out=_empty(like.shape, like.dtype, like.nbytes))
    return ufunc(*xs)


def compared(ufunc: Any, x: Any, other: Any) -> Any:
    """`ufunc(x, other)`, a mask of the shape of x, into reused memory if it is large."""
    if x.size < SMALLEST or x.__class__ is not np.ndarray:
        return ufunc(x, other)
    return ufunc(x, other, out=_empty(x.shape, np.dtype(bool), x.size))


def _rank(x: Any) -> tuple[int, bool]:
    return (x.size, x.flags.c_contiguous) if x.__class__ is np.ndarray else (0, False)


def _fits(x: Any, like: Any) -> bool:
    """Whether x keeps a result in the shape, dtype and layout of `like`."""
    if x.__class__ is float or x.__class__ is int:
        return True
    if x is like:
        return like.dtype.kind == "f" and like.flags.c_contiguous
    return getattr(x, "dtype", None) is like.dtype and x.shape in ((), like.shape)


def _empty(shape: tuple[int, ...], dtype: np.dtype[Any], nbytes: int) -> np.ndarray:
    blocks = _pool.blocks
    for i in range(len(blocks)):
        if blocks[i].nbytes == nbytes and getrefcount(blocks[i]) == _UNUSED:
            return np.ndarray(shape, dtype, blocks[i])
    block = np.empty(nbytes, np.uint8)
    blocks.append(block)
    held = sum(b.nbytes for b in blocks)
    while held > LARGEST:  # the oldest; whoever uses it keeps it
        held -= blocks.pop(0).nbytes
    return np.ndarray(shape, dtype, block)


def is_held_once(x: np.ndarray) -> bool:
    """Whether nobody but the caller's caller, who holds x once, sees its memory."""
    base = x.base
    if getrefcount(x) > _HELD or not x.flags.writeable:
        return False
    if base is None:
        return True
    used_once = getrefcount(base) == _USED_ONCE
    return used_once and any(base is block for block in _pool.blocks)


# How many references these functions see is measured: it differs between Pythons.


def _measure() -> tuple[int, int, int]:
    def held(x: np.ndarray) -> int:
        return _references(x)

    blocks = [np.empty(1, np.uint8)]
    unused = next(getrefcount(blocks[i]) for i in range(len(blocks)))
    array = np.ndarray((1,), np.uint8, blocks[0])
    return unused, held([np.empty(1)].pop()), _references_of_base(array)


def _references(x: np.ndarray) -> int:
    return getrefcount(x)


def _references_of_base(x: np.ndarray) -> int:
    base = x.base
    return getrefcount(base)


_UNUSED, _HELD, _USED_ONCE = _measure()
