"""Reuse of large arrays' memory.

The system hands out the memory of a large array page by page, and zeroes each page when
it is first touched: at 10**7 float64 that takes as long as the computation. So results
of large elementwise operations are put into memory that was used before and that nobody
holds any more: which is so when the only reference left to it is the pool's own.
"""

from __future__ import annotations

import threading
from sys import getrefcount
from typing import Any

import numpy as np

SMALLEST = 10**6  # bytes; below, the system reuses memory well by itself
MOST = 4  # blocks that a thread's pool knows, in use or not


class _Pool(threading.local):
    """One for each thread, so that two never take the same memory."""

    def __init__(self) -> None:
        self.blocks: list[np.ndarray] = []


_pool = _Pool()


def release_memory() -> None:
    """Give back the memory that this thread keeps for reuse (four arrays at most)."""
    _pool.blocks.clear()


def computed(ufunc: Any, *xs: Any) -> Any:
    """`ufunc(*xs)`, into reused memory if the result is like the largest argument."""
    like = max(xs, key=_rank)
    if all(_fits(x, like) for x in xs) and _keeps_dtype(ufunc, xs, like.dtype):
        return ufunc(*xs, out=_empty(like.shape, like.dtype, like.nbytes))
    return ufunc(*xs)


class LargePull:
    """dy * partial(array), in the memory of the array once that is not needed."""

    __slots__ = ("array", "partial")

    def __init__(self, partial: Any, array: np.ndarray) -> None:
        self.partial = partial
        self.array: np.ndarray | None = array

    def __call__(self, dy: Any, keep: bool) -> Any:
        # The partial takes memory that the pool does not give: keep one idle block.
        for i in reversed(_idle()[:-1]):
            del _pool.blocks[i]
        array: Any = self.array
        if not keep:
            self.array = None
        p = self.partial(array)
        if p is not array:
            return large_product(dy, p, is_mine=getattr(p, "base", p) is None)
        del array
        is_mine = not keep and is_held_once(p)
        return large_product(dy, p, is_mine=is_mine)


def large_product(dy: Any, p: Any, *, is_mine: bool) -> Any:
    """dy * p, in the memory of p if nobody else needs that."""
    if p.__class__ is not np.ndarray or p.dtype is not dy.dtype or p.shape != dy.shape:
        return dy * p
    return np.multiply(dy, p, out=p) if is_mine else computed(np.multiply, dy, p)


def compared(ufunc: Any, x: Any, other: Any) -> Any:
    """`ufunc(x, other)`, a mask as large as x, into reused memory if it is large."""
    if x.size < SMALLEST or x.__class__ is not np.ndarray:
        return ufunc(x, other)
    return ufunc(x, other, out=_empty(x.shape, np.dtype(bool), x.size))


def _keeps_dtype(ufunc: Any, xs: Any, dtype: np.dtype[Any]) -> bool:
    """Whether the result has this dtype; SciPy's ufuncs widen float16, for one."""
    if not isinstance(ufunc, np.ufunc) or ufunc.nout != 1 or not dtype.isnative:
        return False
    given = (x.__class__ if x.__class__ in (float, int) else x.dtype for x in xs)
    return ufunc.resolve_dtypes((*given, None))[-1] == dtype


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
    fitting = [i for i in _idle() if blocks[i].nbytes == nbytes]
    # The one used last may still be in the cache; it goes to the end.
    block = blocks.pop(fitting[-1]) if fitting else np.empty(nbytes, np.uint8)
    blocks.append(block)
    del blocks[:-MOST]  # whoever uses an old one keeps it
    return np.ndarray(shape, dtype, block)


def _idle() -> list[int]:
    """The positions of the blocks that nobody uses."""
    blocks = _pool.blocks
    return [i for i in range(len(blocks)) if getrefcount(blocks[i]) == _UNUSED]


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
