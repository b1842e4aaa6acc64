"""How much of the machine a run may use."""

from __future__ import annotations

import os
import re
from pathlib import Path

SHARE = 0.75  # of the machine's memory, for all workers together
_UNITS = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


def default_jobs() -> int:
    """Each worker loads the frameworks again, so that more than four seldom help."""
    return max(1, min(4, os.cpu_count() or 1))


def size_of(words: str) -> int | None:
    """Bytes, from words; None if they are no size.

    >>> size_of("4GB"), size_of("500 MB"), size_of("lots")
    (4000000000, 500000000, None)
    """
    match = re.fullmatch(r"\s*([\d.]+)\s*([kmgt])i?b?\s*", words.lower())
    return int(float(match[1]) * _UNITS[match[2]]) if match else None


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
