"""Random signatures and bad calls, in each framework, eager and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..modes import installed, mode
from ..outcome import Outcome

if TYPE_CHECKING:
    from ..parts import Selection

PART = "signatures"


def names(selection: Selection) -> list[str]:
    from .bad import EVERYWHERE, IN_ENGINE

    where = installed() if selection.frameworks else ["numpy", "numpy tape"]
    bad = [f"{name}; {title}" for name in where for title in EVERYWHERE]
    bad += [f"numpy; {title}" for title in IN_ENGINE]
    drawn = range(selection.signatures)
    return [f"{name}; {selection.seed}:{i}" for name in where for i in drawn] + bad


def trier(selection: Selection) -> Callable[[str], Outcome]:
    return trial


def trial(name: str) -> Outcome:
    from .bad import judge_bad
    from .judge import judge

    where, what = name.split("; ")
    if what.partition(":")[0].isdigit():
        return judge(name, mode(where), *map(int, what.split(":")))
    return judge_bad(name, mode(where), what)
