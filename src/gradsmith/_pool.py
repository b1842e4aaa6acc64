"""Reuse of large arrays' memory.

The system hands out the memory of a large array page by page, and zeroes each page when
it is first touched: at 10**7 float64 that takes as long as the computation. So results of
large elementwise operations are put into memory that was used before and that nobody
holds any more: which is so when the only reference left to it is the pool's own.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

SMALLEST = 1 << 20  # bytes; below, the system reuses memory well by itself
LARGEST = 1 << 28  # bytes that a thread's pool holds at most


class _Pool(threading.local):
    """One for each thread, so that two never take the same memory."""

    def __init__(self) -> None:
        self.blocks: list[np.ndarray] = []


_pool = _Pool()


def empty(shape: tuple[int, ...], dtype: np.dtype[Any], nbytes: int) -> np.ndarray:
    """Return an uninitialised array, if possible in memory that is free again."""
    blocks = _pool.blocks
    for i in range(len(blocks)):
        if blocks[i].nbytes == nbytes and sys.getrefcount(blocks[i]) == _ALONE:
            return np.ndarray(shape, dtype, blocks[i])
    block = np.empty(nbytes, np.uint8)
    blocks.append(block)
    held = sum(b.nbytes for b in blocks)
    while held > LARGEST:  # the oldest; whoever uses it keeps it
        held -= blocks.pop(0).nbytes
    return np.ndarray(shape, dtype, block)


def release_memory() -> None:
    """Give back the memory that this thread keeps for reuse (256 MiB at most)."""
    _pool.blocks.clear()


def _count_alone() -> int:
    """The references that `empty` sees to a block that only the pool holds."""
    blocks = [np.empty(1, np.uint8)]
    return next(sys.getrefcount(blocks[i]) for i in range(len(blocks)))


_ALONE = _count_alone()
