"""The rows of all workers as one table, and in words."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from ...report.terminal import aligned
from ..check.model import Verdict

_WORST = ("wrong", "not checked", *reversed([v for v in Verdict if v != "wrong"]))


def merged(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each operation, whichever worker ran its tests; the worst first."""
    found: dict[Any, dict[str, Any]] = {}
    for row in rows:
        key = (row["framework"], row["file"], row["line"], row["operation"])
        known = found.setdefault(key, {**row, "tests": [], "notes": [], "cases": []})
        for name in ("tests", "notes"):
            known[name] += [each for each in row[name] if each not in known[name]]
        for case in row["cases"]:
            seen = [(each["inputs"], each["verdict"]) for each in known["cases"]]
            if (case["inputs"], case["verdict"]) not in seen:
                known["cases"].append(case)
    for row in found.values():
        row["verdict"] = verdict_of(row)
    return sorted(found.values(), key=_order)


def _order(row: dict[str, Any]) -> Any:
    worst = _WORST.index(row["verdict"]) if row["verdict"] in _WORST else len(_WORST)
    return worst, row["file"], row["line"]


def verdict_of(row: dict[str, Any]) -> str:
    """The worst of its cases, of those that were checked if any was."""
    if row["ignored"]:
        return "ignored"
    verdicts = {case["verdict"] for case in row["cases"]} - {"not checked"}
    return next((each for each in _WORST if each in verdicts), "not checked")


def is_failure(verdict: str, *, strict: bool) -> bool:
    """Whether a session with this verdict fails; what can't be judged never does."""
    if verdict in ("not checked", "ignored", Verdict.UNKNOWN):
        return False
    return not Verdict(verdict).passes(strict=strict)


def table(rows: list[dict[str, Any]], root: str) -> list[str]:
    """The lines of the table."""
    cells = [("", "operation", "framework", "defined at", "verdict", "exercised by")]
    for row in rows:
        known = row["verdict"] in list(Verdict)
        symbol = Verdict(row["verdict"]).symbol if known else "-"
        tests = row["tests"][0] if row["tests"] else ""
        more = len(row["tests"]) - 1
        cells.append(
            (
                symbol,
                row["operation"],
                row["framework"],
                where(row, root),
                row["verdict"],
                f"{tests} and {more} more" if more > 0 else tests,
            )
        )
    return [*aligned(cells)]


def where(row: dict[str, Any], root: str) -> str:
    """File and line, from the root of the suite if it is in there."""
    if not row["file"]:
        return row["module"]
    file = row["file"]
    if file.startswith(root + os.sep):
        file = os.path.relpath(file, root)
    return f"{file}:{row['line']}"


def details(row: dict[str, Any], root: str) -> list[str]:
    """What is to be said of an operation beside its verdict."""
    lines: list[str] = []
    said: list[str] = []
    for case in row["cases"]:
        if case["verdict"] in ("right", "as declared", "right, with limits"):
            limits = case["report"]["limits"]
            words = [f"{row['operation']}: limit: {each['limit']}" for each in limits]
            lines += [line for line in words if line not in lines]
            continue
        call = f"{row['operation']}({case['inputs']})"
        if case["text"] in said:
            lines.append(f"the same for {call}")
            continue
        lines.append(f"{where(row, root)}: {call}")
        if case["random"]:
            lines.append("  with random values: where tests call it, there are none")
        lines += [f"  {line}" for line in case["text"].splitlines()]
        said.append(case["text"])
    return lines + [f"{row['operation']}: {note}" for note in row["notes"]]


def counts(rows: list[dict[str, Any]]) -> str:
    """How many there are of each verdict."""
    n = len(rows)
    if not n:
        return "no custom gradient was exercised"
    kinds = [row["verdict"] for row in rows]
    every = (*_WORST, "ignored")
    words = [f"{kinds.count(each)} {each}" for each in every if each in kinds]
    return f"{n} custom gradient{'s' * (n > 1)}: {'; '.join(words)}"
