"""Reuse of large arrays' memory.

The system hands out the memory of a large array page by page, and zeroes each page when
it is first touched: without reuse the gradient of logsumexp takes 42 ms instead of 30
at 10**7 float64 (python -m benchmarks lse). So results of large elementwise operations
are put into memory that was used before.

A block is either idle, in the pool, or lent to one array: it leaves the pool by `pop`
and comes back by `append`, when the last reference to that array is gone. Both are
atomic, so that threads, signal handlers and finalizers never take the same one.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections import deque
from contextlib import suppress
from functools import cache
from math import prod
from sys import getrefcount
from typing import Any

import numpy as np

SMALLEST = 10**6  # bytes; below, the system reuses memory well by itself
FRESH = 1 << 25  # bytes; from here on, malloc asks the system for each block anew
MOST = 4  # idle blocks that are kept

_idle: deque[np.ndarray] = deque(maxlen=MOST)  # the one used last is at the end


def _let_malloc_keep_memory() -> None:
    """Free one large block, from which glibc learns to keep what is freed.

    At first it gives memory back as soon as 128 KB are free, and a program whose arrays
    are larger has new pages in each step, until it frees a larger array once. A
    gradient of 25 x 1000 x 10 numbers then takes 2.1 ms, and 7.2 before (python -m
    benchmarks.gradbench.measure gmm whole).
    """
    with suppress(MemoryError):
        np.empty(FRESH - (1 << 16), np.uint8)


_let_malloc_keep_memory()


def release_memory() -> None:
    """Give back the memory that is kept for reuse (four arrays at most).

    >>> import gradsmith as gs
    >>> gs.release_memory()
    """
    _idle.clear()


class _Loan:
    """The owner of an array's memory, which gives it to the pool when it dies."""

    __slots__ = ("__array_interface__", "_block")

    def __init__(self, block: np.ndarray, shape: Any, dtype: np.dtype[Any]) -> None:
        self._block = block
        self.__array_interface__ = {
            "data": (block.ctypes.data, False),
            "shape": shape,
            "typestr": dtype.str,
            "version": 3,
        }

    def __del__(
        self, give_back: Any = _idle.append
    ) -> None:  # bound until the very end
        give_back(self._block)


def computed(ufunc: Any, *xs: Any) -> Any:
    """`ufunc(*xs)`, into reused memory if the result is like the largest argument."""
    like = max(xs, key=_rank)
    if all(_fits(x, like) for x in xs) and _keeps_dtype(ufunc, xs, like.dtype):
        return ufunc(*xs, out=empty(like.shape, like.dtype, like.nbytes))
    return ufunc(*xs)


class LargePull:
    """dy * partial(array), in the memory of the array once that is not needed."""

    __slots__ = ("array", "partial")

    def __init__(self, partial: Any, array: np.ndarray) -> None:
        self.partial = partial
        self.array: np.ndarray | None = array

    def __call__(self, dy: Any, keep: bool) -> Any:
        # The partial takes memory that the pool does not give: keep one idle block.
        with suppress(IndexError):  # another thread has taken it
            while len(_idle) > 1:
                _idle.popleft()
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
    plain = p.__class__ is np.ndarray and dy.__class__ is np.ndarray
    if not plain or p.dtype is not dy.dtype or p.shape != dy.shape:
        return dy * p  # dy is a tensor if another tape records this walk
    return np.multiply(dy, p, out=p) if is_mine else computed(np.multiply, dy, p)


def copied(x: np.ndarray) -> np.ndarray:
    """A copy, in reused memory if it is large."""
    if x.nbytes < SMALLEST or x.dtype.kind not in "fc" or not x.dtype.isnative:
        return x.copy()
    y = empty(x.shape, x.dtype, x.nbytes)
    np.copyto(y, x if any(x.strides) else x.flat[0])  # one number: half of the time
    return y


def compared(ufunc: Any, x: Any, other: Any) -> Any:
    """`ufunc(x, other)`, a mask as large as x, into reused memory if it is large."""
    if x.size < SMALLEST or x.__class__ is not np.ndarray:
        return ufunc(x, other)
    return ufunc(x, other, out=empty(x.shape, np.dtype(bool), x.size))


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
    if not isinstance(x, (np.ndarray, np.generic)):  # a tensor, under another tape
        return False
    if x is like:
        return like.dtype.kind == "f" and like.flags.c_contiguous
    return x.dtype is like.dtype and x.shape in ((), like.shape)


def empty(shape: tuple[int, ...], dtype: np.dtype[Any], nbytes: int) -> np.ndarray:
    return np.asarray(_Loan(_taken(nbytes), shape, dtype))


def new(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Memory of any content, reused if it is much; dtypes are native and of numbers."""
    nbytes = prod(shape) * dtype.itemsize
    return np.empty(shape, dtype) if nbytes < SMALLEST else empty(shape, dtype, nbytes)


def zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Zeros that are written to, in reused memory if they are many."""
    nbytes = prod(shape) * dtype.itemsize
    if nbytes < SMALLEST or dtype.kind not in "fc" or not dtype.isnative:
        return np.zeros(shape, dtype)
    x = empty(shape, dtype, nbytes)
    x.fill(0)
    return x


_BYTES = np.dtype(np.uint8)
ALIGNMENT = 64  # bytes: a cache line; others take memory from there without a copy


def aligned(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """A new array at an address that others take; reused memory if it is large."""
    nbytes = prod(shape) * dtype.itemsize
    is_large = nbytes >= SMALLEST
    block = empty((nbytes,), _BYTES, nbytes) if is_large else _aligned(nbytes)
    return np.ndarray(shape, dtype, block)


def ask_for_large_pages(address: int, nbytes: int) -> None:
    """Let the system hand out new memory by pages of 2 MB, if it can.

    NumPy does that with its arrays. Zeroing 64 MB page by page takes 35 ms, in large
    pages 10.
    """
    madvise = _madvise()
    if madvise is not None and nbytes >= FRESH:
        start = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
        madvise(start, address + nbytes - start, mmap.MADV_HUGEPAGE)


@cache
def _madvise() -> Any:
    """The function of the C library; None where it has no large pages."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    function = getattr(ctypes.CDLL(None), "madvise", None)
    if function is not None:
        function.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    return function


def _taken(nbytes: int) -> np.ndarray:
    """A block of this size, which nobody else can take from now on."""
    others: list[np.ndarray] = []
    try:
        while (block := _idle.pop()).nbytes != nbytes:
            others.append(block)
    except IndexError:
        block = _aligned(nbytes)
    _idle.extend(reversed(others))
    return block


def _aligned(nbytes: int) -> np.ndarray:
    """New memory from the start of a cache line on: a kernel's stores take 0.85."""
    memory = np.empty(nbytes + ALIGNMENT, _BYTES)
    start = -memory.__array_interface__["data"][0] % ALIGNMENT
    return memory[start : start + nbytes]


def is_held_once(x: np.ndarray, seen: int | None = None) -> bool:
    """Whether nobody but the caller's caller, who holds x once, sees its memory.

    A compiled module measures by itself how many `references` are seen then.
    """
    return owns(x) and getrefcount(x) <= (_HELD if seen is None else seen)


def owns(x: np.ndarray) -> bool:
    """Whether it may be written to, and references to it tell who sees its memory."""
    return _COUNTS and x.flags.writeable and (x.base is None or is_lent(x))


def is_lent(x: np.ndarray) -> bool:
    """Whether its memory is a block of the pool, which no other array has."""
    return isinstance(x.base, _Loan)


# References are counted where they say who holds an array: a Python without a lock, and
# one from 3.14 on, lends references that it does not count.
_COUNTS = sys.version_info < (3, 14) and getattr(sys, "_is_gil_enabled", lambda: True)()


def _measure() -> int:
    """How many references `is_held_once` sees; it differs between Pythons."""

    def held(x: np.ndarray) -> int:
        return references(x)

    return held([np.empty(1)].pop())


def references(x: np.ndarray) -> int:
    return getrefcount(x)


_HELD = _measure()
