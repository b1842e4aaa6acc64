"""What a run found, operation by operation, as every machine-readable format says it.

An entry has a level, a place in the user's code, and remarks with places of their own.
"""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from rich.console import Console

from .audited import Audited
from .definitions import line_of
from .results import Status, TaskOutcome


class Level(StrEnum):
    """How much a reader should care."""

    FINE = "fine"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Spot:
    """A place in a file; the path is that of the repository, if it is inside."""

    path: str
    line: int = 1
    column: int = 1

    @property
    def is_relative(self) -> bool:
        return not os.path.isabs(self.path)

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True)
class Remark:
    """One thing to say; `rule` is the promise that it is about."""

    rule: str
    text: str
    spot: Spot | None


@dataclass(frozen=True)
class Entry:
    """One operation, or a file that could not be imported."""

    label: str
    file: str
    name: str
    framework: str
    verdict: str
    symbol: str
    level: Level
    is_judged: bool
    is_run: bool
    remark: str
    text: str
    seconds: float
    spot: Spot | None
    remarks: tuple[Remark, ...] = ()


@dataclass(frozen=True)
class Finished:
    """A whole run: `data` is its JSON document, `show` prints it to a terminal."""

    tool: str
    subject: str  # of the badge
    entries: tuple[Entry, ...]
    counts: dict[str, int]  # of each verdict
    total: str
    seconds: float
    data: dict[str, Any]
    show: Callable[[Console], None]

    @property
    def level(self) -> Level | None:
        """The worst of all; None if there is nothing."""
        order = [*Level]
        return max((e.level for e in self.entries), key=order.index, default=None)

    @property
    def summary(self) -> dict[str, Any]:
        """What a badge needs to know."""
        level = None if self.level is None else self.level.value
        return {"subject": self.subject, "counts": self.counts, "level": level}


# --- places


def spot(file: str, line: int) -> Spot:
    """A place as a repository's readers name it: relative to its root if it is known.

    That is where a workflow's checkout is, else where the command runs.
    """
    path = Path(os.path.abspath(file))
    root = Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()
    inside = path.is_relative_to(root)
    name = path.relative_to(root).as_posix() if inside else path.as_posix()
    text = linecache.getline(str(path), line)
    return Spot(name, line, len(text) - len(text.lstrip()) + 1)


def _defined(file: str, name: str) -> Spot | None:
    if not file:
        return None
    try:
        code = Path(file).read_bytes()
    except OSError:
        return spot(file, 1)
    return spot(file, line_of(code, name) or 1)


# --- of a check


def of_check(result: TaskOutcome, *, strict: bool) -> Entry:
    document = result.document()
    where = _rule_of(result)
    return Entry(
        label=result.label,
        file=result.file,
        name=result.name,
        framework=result.framework,
        verdict=result.status.value,
        symbol=result.status.symbol,
        level=_level(result.status, strict=strict),
        is_judged=result.status not in (Status.UNKNOWN, Status.FAILED),
        is_run=result.status is not Status.FAILED,
        remark=document.remark,
        text=str(result),
        seconds=result.seconds,
        spot=where,
        remarks=tuple(_remarks(result, document.remark, where)),
    )


def _level(status: Status, *, strict: bool) -> Level:
    if status in (Status.RIGHT, Status.DECLARED):
        return Level.FINE
    is_graded = status in (Status.LIMITED, Status.SURROGATE)
    is_error = status is Status.WRONG or (is_graded and strict)
    return Level.ERROR if is_error else Level.WARNING


def _rule_of(result: TaskOutcome) -> Spot | None:
    """Where the rule is; else where the user's code raised, or the definition is."""
    rule = (result.report or {}).get("rule")
    if rule:
        return spot(rule["file"], rule["line"])
    raised = re.findall(r'File "(.+)", line (\d+)', result.details)
    own = os.path.abspath(result.file)
    lines = [int(line) for file, line in raised if os.path.abspath(file) == own]
    if lines:
        return spot(result.file, lines[-1])
    return _defined(result.file, result.name)


def _remarks(result: TaskOutcome, remark: str, where: Spot | None) -> list[Remark]:
    report = result.report or {}
    found = [
        Remark(
            _promise(result, each), "\n".join([each["title"], *each["lines"]]), where
        )
        for each in report.get("findings", ())
    ]
    limits = [each["limit"] for each in report.get("limits", ())] + result.limits
    found += [Remark("limit", f"limit: {each}", where) for each in limits]
    words = (remark, result.details) if result.status is Status.FAILED else (remark,)
    return found or [Remark(result.status.value, "\n".join(filter(None, words)), where)]


def _promise(result: TaskOutcome, finding: dict[str, Any]) -> str:
    """What a finding breaks; a surrogate promises to be none of it."""
    return "surrogate" if result.status is Status.SURROGATE else finding["what"]


# --- of an audit


def of_audit(result: Audited, limit: float) -> Entry:
    document = result.document()
    level = Level.FINE if result.is_judged else Level.WARNING
    verdict = f"within {limit:g} ULP" if result.is_judged else "could not be judged"
    if result.beyond(limit):
        level, verdict = Level.ERROR, f"beyond {limit:g} ULP"
    where = _defined(result.file, result.name)
    regions = _regions(result, where) if level is Level.ERROR else []
    plain = Remark("accuracy", f"{verdict}: {document.remark}", where)
    return Entry(
        label=result.label,
        file=result.file,
        name=result.name or result.label,
        framework=document.framework.partition(" ")[0],
        verdict=verdict,
        symbol={Level.FINE: "✓", Level.WARNING: "!", Level.ERROR: "✗"}[level],
        level=level,
        is_judged=level is not Level.WARNING,
        is_run=result.report is not None,
        remark=document.remark,
        text=str(result),
        seconds=result.seconds,
        spot=where,
        remarks=tuple(regions or [plain]),
    )


def _regions(result: Audited, where: Spot | None) -> list[Remark]:
    report = result.report
    regions = [*report.value.regions]
    for each in report.gradients.values():
        regions += each.regions
    found: dict[str, Remark] = {}
    for each in regions:
        found[each.text] = Remark(each.kind, each.text, _cause(result, each, where))
    return [*found.values()]


def _cause(result: Audited, region: Any, where: Spot | None) -> Spot | None:
    """The line in which digits are lost, if it is one of this file."""
    match = re.search(r"`(.+)`, line (\d+)", region.cause or "")
    if match is None or where is None:
        return where
    line = int(match[2])
    text = linecache.getline(os.path.abspath(result.file), line)
    return spot(result.file, line) if match[1] in text else where
