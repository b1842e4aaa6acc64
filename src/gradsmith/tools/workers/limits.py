"""How much of the machine workers may use."""

from __future__ import annotations

import os
from pathlib import Path

SHARE = 0.75  # of the machine's memory, for all workers together


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def default_jobs() -> int:
    """Each worker loads the frameworks again, so that more than four seldom help."""
    return min(4, cores())


def default_memory(jobs: int) -> int | None:
    """A worker's part of what the machine, or the container, has."""
    total = [size for size in (_machine(), _container()) if size]
    return int(SHARE * min(total) / jobs) if total else None


def _machine() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def _container() -> int | None:
    try:
        words = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return None
    return int(words) if words.isdecimal() else None
