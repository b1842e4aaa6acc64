"""What a page shows: one entry for each operation, gathered from plain dicts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .scales import number

# What is wrong comes first, then what is not known.
STATUSES = (
    *("wrong", "could not run", "inconclusive", "right"),
    *("inaccurate", "accurate"),  # of audits alone
)
SYMBOLS = {
    "honoured": "✓",
    "dropped": "✗",
    "refused": "-",
    "unclear": "?",
    "wrong": "✗",
    "could not run": "!",
    "inconclusive": "?",
    "right": "✓",
    "inaccurate": "✗",
    "accurate": "✓",
}
SILENT = ("dropped", "wrong")  # what a transformation may do to a rule without a word
LIMIT = 4.0  # ULP


@dataclass(frozen=True)
class Entry:
    """One operation, or a file that could not be imported.

    The parts are dicts as results give them (`as_dict`); one that was left out is
    `{"skipped": reason}`, and one that was not asked for is None.
    """

    label: str
    status: str
    anchor: str = ""
    framework: str = ""
    message: str = ""
    details: str = ""
    output: str = ""
    seconds: float = 0.0
    check: Mapping[str, Any] | None = None
    survival: Mapping[str, Any] | None = None
    audit: Mapping[str, Any] | None = None
    samples: Mapping[str, Any] | None = None
    timing: Mapping[str, Any] | None = None
    lost: str = ""  # why parts are missing that were asked for

    @property
    def name(self) -> str:
        """The operation without its file."""
        return self.label.rpartition(":")[2]

    @property
    def file(self) -> str:
        return self.label.rpartition(":")[0]

    @property
    def rank(self) -> int:
        return STATUSES.index(self.status)

    def part(self, name: str) -> Mapping[str, Any] | None:
        """A part that is there."""
        found = getattr(self, name)
        return None if found is None or "skipped" in found else found

    def skipped(self, name: str) -> str:
        """Why a part is not there."""
        return (getattr(self, name) or {}).get("skipped", "")

    @property
    def silent(self) -> list[str]:
        """The transformations that drop the rule, or get it wrong, without a word."""
        outcomes = (self.part("survival") or {}).get("outcomes", [])
        return [o["transformation"] for o in outcomes if o["verdict"] in SILENT]


@dataclass(frozen=True)
class Page:
    """All of them, the worst first."""

    title: str
    entries: tuple[Entry, ...]
    command: str = ""
    version: str = ""
    made: str = ""  # when
    seconds: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        found = Counter(entry.status for entry in self.entries)
        return {status: found[status] for status in STATUSES if found[status]}

    def has(self, part: str) -> bool:
        """Whether any operation has a part, or should have had it."""
        return any(getattr(entry, part) is not None for entry in self.entries)


def entries_of(results: Iterable[Mapping[str, Any]]) -> tuple[Entry, ...]:
    """Entries from the results of a run of the command line, as dicts."""
    return arranged(_entry(result) for result in results)


def _entry(result: Mapping[str, Any]) -> Entry:
    more = result.get("more") or {}
    file, name = result["file"], result["name"]
    report = result["report"]
    is_contract = report is None and result["status"] == "wrong"
    version = f" {report['version']}" if report else ""
    return Entry(
        label=f"{file}:{name}" if name else file,
        status=result["status"],
        framework=f"{result['framework']}{version}",
        message=result["text"] if is_contract else result["message"],
        details=result["details"],
        output=result["output"],
        seconds=result["seconds"],
        check=report,
        **more,
    )


def entries_of_audits(audits: Iterable[Any]) -> tuple[Entry, ...]:
    """Entries of audits alone: `Audit`s, or what their `as_dict` gives."""
    dicts = [a if isinstance(a, Mapping) else a.as_dict() for a in audits]
    return arranged(
        Entry(
            label=audit["operation"],
            status="accurate" if is_accurate(audit) else "inaccurate",
            framework=f"{audit['framework']} {audit['version']}",
            seconds=audit["seconds"],
            audit=audit,
        )
        for audit in dicts
    )


def is_accurate(audit: Mapping[str, Any]) -> bool:
    """Whether all that was judged is within 4 ULP, and something was."""
    judged = [audit[what] for what in ("value", "gradient") if audit[what]["judged"]]
    return bool(judged) and not any(map(is_off, judged))


def is_off(accuracy: Mapping[str, Any]) -> bool:
    return bool(accuracy["wrong"]) or number(accuracy["max_ulp"]) > LIMIT


def arranged(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """The worst first, each with an anchor of its own."""
    taken: set[str] = set()
    named = [replace(entry, anchor=_anchor(entry, taken)) for entry in entries]
    return tuple(sorted(named, key=lambda entry: (entry.rank, not entry.silent)))


def _anchor(entry: Entry, taken: set[str]) -> str:
    """Made of letters that a link needs not escape: the operation and its place."""
    framework = entry.framework.partition(" ")[0]
    plain = re.sub(r"[^A-Za-z0-9_.]+", "-", f"{entry.label}-{framework}").strip("-.")
    name, i = f"op-{plain}", 1
    while name in taken:
        i += 1
        name = f"op-{plain}-{i}"
    taken.add(name)
    return name
