"""Bytes that a call leaves behind, of every public entry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks._peers import is_installed

from ..outcome import Outcome

if TYPE_CHECKING:
    from ..parts import Selection

PART = "leaks"
MOST = 16.0  # bytes per call


def names(selection: Selection) -> list[str]:
    from .engine import ENTRIES
    from .frameworks import ENTRIES as FOREIGN

    foreign = [f"{framework}: {entry}" for framework, entry in FOREIGN]
    foreign = [name for name in foreign if is_installed(name.split(":")[0])]
    mine = [f"engine: {entry}" for entry in ENTRIES]
    return mine + (foreign if selection.frameworks else [])


def trier(selection: Selection) -> Callable[[str], Outcome]:
    def trial(name: str) -> Outcome:
        from .measure import growth

        found = growth(_call(name), selection.calls, MOST)
        text = f"{found:.0f} bytes per call"
        if found > MOST:
            return Outcome(PART, name, "leak", f"{name}: {text}")
        return Outcome(PART, name, "right", checks=("bytes per call",))

    return trial


def _call(name: str) -> Callable[[], object]:
    where, entry = name.split(": ", 1)
    if where == "engine":
        from .engine import ENTRIES

        return ENTRIES[entry]()
    from .frameworks import ENTRIES as FOREIGN

    return FOREIGN[where, entry]()
