"""Timing: contenders in turn, the least time of each."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE = 2.0  # seconds of silence before progress is shown
PACE = 5.0  # seconds between two lines where lines can't be overwritten


class Progress:
    """Says on stderr what is going on, once it takes more than two seconds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.next = time.monotonic() + PATIENCE

    def __call__(self, doing: str) -> None:
        if time.monotonic() < self.next:
            return
        if sys.stderr.isatty():
            print(f"\r{self.name}: {doing:50}", end="\r", file=sys.stderr, flush=True)
        else:
            print(f"{self.name}: {doing}", file=sys.stderr, flush=True)
            self.next = time.monotonic() + PACE


@contextmanager
def no_gc() -> Iterator[None]:
    """A collection would hit whoever's turn it is: do it before, then none."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def interleaved(
    calls: dict[str, Callable[[], Any]],
    progress: Progress,
    *,
    rounds: int,
    turn: float = 0.05,
) -> dict[str, float]:
    """Seconds per call of each contender: the least of several rounds.

    Other work on the machine, interrupts and cold caches only ever add time, so the
    least time is the one closest to what the code itself takes; a mean or a median
    measures the neighbours as well. Every round gives each contender one turn of at
    least `turn` seconds, so that a slow minute or a changed clock rate meets all.
    """
    groups = {name: _group(call) for name, call in calls.items()}
    best = dict.fromkeys(calls, float("inf"))
    for done in range(rounds):
        for name, call in calls.items():
            progress(f"round {done + 1} of {rounds}, {name}")
            with no_gc():
                best[name] = min(best[name], _least(call, groups[name], turn))
    return best


def _group(call: Callable[[], Any]) -> int:
    """How many calls take a millisecond, found in the warm-up.

    Long enough for the clock, and short enough to be missed by most interruptions.
    """
    call()
    start = time.perf_counter()
    call()
    return max(1, round(0.001 / (time.perf_counter() - start)))


def _least(call: Callable[[], Any], group: int, turn: float) -> float:
    """The least seconds per call of the groups in a turn."""
    best, end = float("inf"), time.perf_counter() + turn
    while True:
        start = time.perf_counter()
        for _ in range(group):
            call()
        now = time.perf_counter()
        best = min(best, (now - start) / group)
        if now >= end:
            return best
