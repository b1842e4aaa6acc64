"""How much memory grows with each call.

Python's allocations are counted by tracemalloc (NumPy's arrays too), the frameworks' by
the C library. After a warm-up memory is read after each batch of calls. What a call
leaves behind makes every step as large, so it is told by the second smallest of them;
caches, which fill up now and then, only ever make some steps larger.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np

BATCHES = 6
SECONDS = 1.0  # for all the calls of an entry, about
FEWEST = 16  # calls


# Python's cache of attributes keeps names alive, 4096 at most
_forget_names = getattr(sys, "_clear_internal_caches", None) or sys._clear_type_cache


class _MallInfo(ctypes.Structure):
    names = (
        "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    )
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]


def _c_library() -> Any:
    try:
        found = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError, TypeError):  # not glibc
        return None
    found.restype = _MallInfo
    return found


_mallinfo2 = _c_library()


def _in_use() -> tuple[int, int]:
    """Bytes in use: Python's, and the C library's main heap."""
    _forget_names()
    for _ in range(2):
        gc.collect()
    python = tracemalloc.get_traced_memory()[0]
    return python, _mallinfo2().uordblks if _mallinfo2 else 0


def growth(call: Callable[[], Any], calls: int, allowed: float) -> float:
    """Bytes per call; beyond the allowed, measured again with more calls.

    What stays does not become less with them; what the C library's heap is cut into
    does.
    """
    count, found = _count(call, calls), np.inf
    tracemalloc.start()
    try:
        for factor in (1, 4, 8):
            found = min(found, _measured(call, factor * count))
            if found <= allowed:
                break
        return found
    finally:
        tracemalloc.stop()


def _count(call: Callable[[], Any], calls: int) -> int:
    """How many calls there is time for, found in the warm-up."""
    call()
    start, done = time.process_time(), 0
    while done < 3 or (time.process_time() - start < SECONDS / 8 and done < calls // 4):
        call()
        done += 1
    each = max(time.process_time() - start, 1e-6) / done
    return max(FEWEST, min(calls, int(SECONDS / (3 * each))))


def _measured(call: Callable[[], Any], count: int) -> float:
    per_batch = max(1, count // BATCHES)
    found = np.zeros((BATCHES + 1, 2))  # made before: it is not to be counted itself
    for batch in range(BATCHES + 1):  # the first one warms up
        for _ in range(per_batch):
            call()
        found[batch] = _in_use()
    steps = np.sort(np.diff(found, axis=0), axis=0)
    return float(steps[1].max() / per_batch)
