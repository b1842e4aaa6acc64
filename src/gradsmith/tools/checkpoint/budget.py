"""How many states may be stored: as a number, or as memory."""

from __future__ import annotations

import re
from math import isfinite
from numbers import Real
from typing import Any

from ...core.errors import GradsmithError

_UNITS = {
    "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]+)\s*")


def parse(budget: Any) -> int:
    """Bytes, from a number of them or from words.

    >>> parse("512 MB"), parse("1.5 KiB"), parse(100), parse(1e6)
    (512000000, 1536, 100, 1000000)
    """
    if isinstance(budget, Real) and not isinstance(budget, bool) and isfinite(budget):
        return int(float(budget))
    found = _SIZE.fullmatch(budget) if isinstance(budget, str) else None
    unit = found and _UNITS.get(found[2].lower())
    if not found or not unit:
        raise GradsmithError(
            f"budget={budget!r} is no amount of memory\n"
            "  expected: bytes as a number, or words like '512 MB' or '2 GiB'"
        )
    return int(float(found[1]) * unit)


def words(size: float) -> str:
    """Bytes as a reader wants them.

    >>> words(512000000), words(1530), words(12)
    ('512 MB', '1.53 kB', '12 B')
    """
    for unit in ("TB", "GB", "MB", "kB"):
        one = _UNITS[unit.lower()]
        if size >= one:
            return f"{size / one:.3g} {unit}"
    return f"{size:.0f} B"


def snapshots_for(budget: Any, one: int) -> int:
    """How many states of `one` bytes fit."""
    size = parse(budget)
    if size < one:
        raise GradsmithError(
            f"budget={budget!r} is too small\n"
            f"  expected: at least one state, which takes {words(one)}\n"
            f"  got: {words(size)}\n"
            f"  what to do: budget={words(one)!r} at least; each further state that "
            "fits saves recomputation. Or store states in less: float32, fewer fields"
        )
    return size // max(one, 1)


def count(name: str, value: Any, least: int) -> int:
    """A whole number that is not too small."""
    try:
        number = value.__index__()
    except AttributeError:
        number = None
    if number is None or isinstance(value, bool):
        raise GradsmithError(f"{name}= is a whole number, not {value!r}")
    if number < least:
        raise GradsmithError(
            f"{name}={number} is too small\n  expected: {least} or more\n"
            f"  what to do: {_WHAT_TO_DO[name]}"
        )
    return number


_WHAT_TO_DO = {
    "steps": "give the number of steps to take; 0 returns the state as it is",
    "snapshots": "one stored state is the least: the first one, from which all others "
    "are recomputed; each further one saves steps",
    "disk": "0 stores none on disk",
}
