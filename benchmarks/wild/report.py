"""The report: figures with their targets, truth by verdict, and each disagreement."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from benchmarks._peers import PEERS
from benchmarks._report import Options, machine

from .case import EDGE, RIGHT, SURROGATE, TRUTHS, WRONG, Case
from .cases import FRAMEWORKS

BUDGET = 20.0  # seconds that gs.check takes by default
ANSWERS = {  # the verdicts that a truth may get
    RIGHT: ("right", "right, with limits"),
    EDGE: ("right", "right, with limits"),
    WRONG: ("wrong", "right, with limits"),  # the limit must name it: read them
    SURROGATE: ("surrogate", "as declared"),
}
Row = tuple[Case, dict[str, Any]]


@dataclass(frozen=True)
class Figure:
    """One number with its target."""

    case: str
    value: float
    target: float
    at_most: bool
    count: str = ""

    @property
    def ok(self) -> bool:
        return self.value <= self.target if self.at_most else self.value >= self.target

    def as_dict(self) -> dict[str, Any]:
        return {**vars(self), "ok": self.ok}


def agrees(case: Case, outcome: dict[str, Any]) -> bool:
    return outcome["verdict"] in ANSWERS[case.truth]


def figures(rows: list[Row]) -> list[Figure]:
    if not rows:
        return []
    found = []
    for title, truths, target in (
        ("right ones called right", (RIGHT, EDGE), 0.98),
        ("bugs found", (WRONG,), 1.0),
        ("surrogates recognised", (SURROGATE,), 0.95),
    ):
        of = [row for row in rows if row[0].truth in truths]
        count = sum(agrees(*row) for row in of)
        if of:
            said = f"{count} of {len(of)}"
            found.append(Figure(title, count / len(of), target, False, said))
    crashes = sum(o["verdict"] in ("raised", "not made") for _, o in rows)
    found.append(Figure("crashes", crashes, 0, True))
    silent = sum(o["verdict"] == "no verdict" for _, o in rows)
    found.append(Figure("no verdict", silent, 0, True))
    seconds = sorted(o["seconds"] for _, o in rows)
    found.append(Figure("seconds, median", statistics.median(seconds), BUDGET, True))
    p90 = seconds[min(len(seconds) - 1, int(0.9 * len(seconds)))]
    found.append(Figure("seconds, p90", p90, 10.0, True))
    found.append(Figure("seconds, largest", seconds[-1], 1.2 * BUDGET, True))
    return found


@dataclass
class WildReport:
    """What gs.check said of every case."""

    name: str
    options: Options
    outcomes: list[Row] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        rows = figures(self.outcomes)
        return bool(rows) and all(row.ok for row in rows)

    def disagreements(self) -> list[Row]:
        return [row for row in self.outcomes if not agrees(*row)]

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "rows": [row.as_dict() for row in figures(self.outcomes)],
            "ok": self.ok,
            "cases": [{**_described(c), **o} for c, o in self.outcomes],
            "packages": sorted({c.package for c, _ in self.outcomes}),
            "skipped": [
                {"peer": name, "install": PEERS[name].install} for name in self.skipped
            ],
            "notes": self.notes,
            "quick": self.options.quick,
            "machine": machine(),
        }

    def table(self) -> str:
        packages = {c.package for c, _ in self.outcomes}
        parts = [f"{self.name}: {len(self.outcomes)} cases, {len(packages)} packages"]
        parts += ["", *_figures(figures(self.outcomes))]
        parts += ["", *_by_truth(self.outcomes), "", *_seconds(self.outcomes)]
        wrong = self.disagreements()
        if wrong:
            parts += ["", f"disagreements: {len(wrong)}"]
        for case, outcome in wrong:
            text = " ".join(outcome.get("text", "").split())[:160]
            said = f"{outcome['verdict']} ({outcome['seconds']:.1f} s)"
            parts.append(f"  {case.name}: {case.truth}, called {said}. {text}")
        parts += [
            f"skipped: {PEERS[name].title} is not installed ({PEERS[name].install})"
            for name in self.skipped
        ]
        if self.options.quick:
            parts.append("quick: these figures mean nothing")
        return "\n".join([*parts, *self.notes, ""])


def _described(case: Case) -> dict[str, Any]:
    names = ("name", "framework", "package", "version", "source", "truth", "why")
    return {name: getattr(case, name) for name in names}


def _figures(rows: list[Figure]) -> list[str]:
    return [
        f"{row.case:26}{row.value:>9.3g}  {row.count:>12}  "
        f"{'<=' if row.at_most else '>='} {row.target:<5g} {'yes' if row.ok else 'NO'}"
        for row in rows
    ]


def _by_truth(rows: list[Row]) -> list[str]:
    """Framework and truth down, verdict across."""
    verdicts = sorted({o["verdict"] for _, o in rows})
    lines = [f"{'':24}" + "".join(f"{word:>20}" for word in verdicts)]
    for framework in FRAMEWORKS:
        for truth in TRUTHS:
            counts = Counter(
                o["verdict"]
                for c, o in rows
                if (c.framework, c.truth) == (framework, truth)
            )
            if counts:
                cells = "".join(f"{counts[word] or '':>20}" for word in verdicts)
                lines.append(f"{framework:12}{truth:12}{cells}")
    return lines


def _seconds(rows: list[Row]) -> list[str]:
    lines = [f"{'seconds':12}{'median':>10}{'p90':>10}{'largest':>10}"]
    for framework in FRAMEWORKS:
        mine = sorted(o["seconds"] for c, o in rows if c.framework == framework)
        if mine:
            p90 = mine[min(len(mine) - 1, int(0.9 * len(mine)))]
            figures = (statistics.median(mine), p90, mine[-1])
            lines.append(f"{framework:12}" + "".join(f"{s:>10.2f}" for s in figures))
    return lines


@dataclass
class OracleReport(WildReport):
    """What the oracle measured, beside the truth that is written down."""

    @property
    def ok(self) -> bool:
        return bool(self.outcomes) and all(o.get("fits") for _, o in self.outcomes)

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "ok": self.ok,
            "cases": [{**_described(c), **o} for c, o in self.outcomes],
            "machine": machine(),
        }

    def table(self) -> str:
        head = f"{'':58}{'truth':10}{'first':12}{'error':>9}  {'dtype':9}second"
        lines = [head]
        for case, o in self.outcomes:
            error = f"{o.get('error', float('nan')):.1e}"
            mark = "" if o.get("fits") else "  <-- NO"
            first = o.get("first") or o.get("text") or ""
            lines.append(
                f"{case.name[:57]:58}{case.truth:10}{first[:200]:12}{error:>9}  "
                f"{o.get('dtype', ''):9}{o.get('second', '')}{mark}"
            )
        return "\n".join(lines)
