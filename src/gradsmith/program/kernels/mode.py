"""Whether an operation is being traced for a kernel."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_thread = threading.local()


def in_kernel() -> bool:
    """Whether what runs now becomes a kernel, whose exp and log are precise."""
    return getattr(_thread, "on", False)


@contextmanager
def for_kernel() -> Iterator[None]:
    before = in_kernel()
    _thread.on = True
    try:
        yield
    finally:
        _thread.on = before
