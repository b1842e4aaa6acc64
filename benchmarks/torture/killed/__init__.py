"""Runs that are killed at a random time and resumed, and files that are damaged."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..outcome import Outcome

if TYPE_CHECKING:
    from ..parts import Selection

PART = "killed"


def names(selection: Selection) -> list[str]:
    from .kinds import KINDS

    times = range(selection.killed)
    return [f"{kind}; {selection.seed}:{i}" for kind in KINDS for i in times]


def trier(selection: Selection) -> Callable[[str], Outcome]:
    return trial


def trial(name: str) -> Outcome:
    import random

    from .kinds import KINDS

    kind, seed = name.split("; ")
    try:
        KINDS[kind](random.Random(seed))
    except AssertionError as error:
        return Outcome(PART, name, "wrong", f"{kind}: {str(error)[:200]}", str(error))
    return Outcome(PART, name, "right", checks=(kind,))
