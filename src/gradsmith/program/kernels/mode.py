"""Whether an operation is being traced for a kernel."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_thread = threading.local()


def in_kernel() -> bool:
    """Whether what runs now becomes a kernel, whose exp and log are precise."""
    return getattr(_thread, "target", "") != ""


def in_cpu_kernel() -> bool:
    """Whether it becomes one for a CPU, which can leave out passes for single rows."""
    return getattr(_thread, "target", "") == "cpu"


def in_gpu_kernel() -> bool:
    """Whether it becomes one for a GPU, to which a choice by rows is a branch."""
    return getattr(_thread, "target", "") == "gpu"


@contextmanager
def for_kernel(*, gpu: bool = False) -> Iterator[None]:
    before = getattr(_thread, "target", "")
    _thread.target = "gpu" if gpu else "cpu"
    try:
        yield
    finally:
        _thread.target = before
