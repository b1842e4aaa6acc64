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
    numbers = {name: _repeats(call, turn) for name, call in calls.items()}
    best = dict.fromkeys(calls, float("inf"))
    for done in range(rounds):
        for name, call in calls.items():
            progress(f"round {done + 1} of {rounds}, {name}")
            with no_gc():
                best[name] = min(best[name], _seconds(call, numbers[name]))
    return best


def _repeats(call: Callable[[], Any], turn: float) -> int:
    """How many calls make a turn, found in the warm-up."""
    call()
    start = time.perf_counter()
    call()
    return max(1, round(turn / (time.perf_counter() - start)))


def _seconds(call: Callable[[], Any], number: int) -> float:
    """The least of a turn's calls in five groups, or one by one if they are few."""
    group = max(1, number // 5)
    best = float("inf")
    for _ in range(max(1, number // group)):
        start = time.perf_counter()
        for _ in range(group):
            call()
        best = min(best, (time.perf_counter() - start) / group)
    return best
