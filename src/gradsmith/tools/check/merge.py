"""One report of several: an operation that was checked on each of its examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from .model import CheckReport, Finding, Look, Verdict

_WORST = (Verdict.RIGHT, Verdict.INCONCLUSIVE, Verdict.WRONG)

T = TypeVar("T", Finding, Look)


def merged(reports: Sequence[CheckReport], names: Sequence[str]) -> CheckReport:
    """The worst verdict, and all that was found; `names` are those of the examples."""
    if len(reports) == 1:
        return reports[0]
    pairs = list(zip(reports, names, strict=True))
    seen = [r.resolution for r in reports if r.resolution is not None]
    return replace(
        reports[0],
        verdict=max((r.verdict for r in reports), key=_WORST.index),
        findings=tuple(_named(f, name) for r, name in pairs for f in r.findings),
        looks=tuple(_named(look, name) for r, name in pairs for look in r.looks),
        notes=tuple(_notes(pairs)),
        resolution=max(seen, default=None),
        seconds=sum(r.seconds for r in reports),
    )


def _named(found: T, name: str) -> T:
    where = f"{name}, {found.scenario}" if found.scenario else name
    return replace(found, scenario=where)


def _notes(pairs: list[tuple[CheckReport, str]]) -> list[str]:
    """Those that hold for all examples once, the others with the example's name."""
    notes = [note for report, _ in pairs for note in report.notes]
    shared = [n for n in dict.fromkeys(notes) if notes.count(n) == len(pairs)]
    own = [f"{name}: {n}" for r, name in pairs for n in r.notes if n not in shared]
    return shared + own
