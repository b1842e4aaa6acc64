"""What a run on balls has met on its way: ties, kinks, points outside of a domain."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Notes:
    """Masks of where something was met; `side` is how exact ties are broken.

    A tie is broken upwards (1), downwards (-1), or as floating-point numbers would
    (0). The derivative on each side of a kink is that of the run on this side.
    """

    def __init__(self, *, side: int, careful: bool) -> None:
        self.side = side
        self.careful = careful  # look for kinks and domains: 60 ns more a call
        self.masked = False  # cotangents may be 0 since a branch was not taken
        self.ties: list[Any] = []  # the derivative may differ on both sides
        self.kinks: list[Any] = []  # the slope is infinite, and declared otherwise
        self.outside: list[Any] = []  # there is no value: outside of a domain, a pole
        self.unsure: list[Any] = []  # a choice that no ball can express, as of an index


class _State(threading.local):
    notes: Notes = Notes(side=0, careful=False)


state = _State()


@contextmanager
def noting(*, side: int = 0, careful: bool = False) -> Iterator[Notes]:
    """Take notes of what follows."""
    before, state.notes = state.notes, Notes(side=side, careful=careful)
    try:
        yield state.notes
    finally:
        state.notes = before
