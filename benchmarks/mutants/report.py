"""The report: targets, checkers side by side, kinds by checker, what was missed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks._peers import PEERS
from benchmarks._report import Options, machine

from .kinds import KINDS
from .outcome import OURS, Outcome
from .summary import CHECKS, by_kind, checkers, column, figures, order

SHOWN = 40  # of the surprises; all are in the JSON


@dataclass
class MutantReport:
    """What every checker said of every subject."""

    name: str
    options: Options
    outcomes: list[Outcome] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        rows = figures(self.outcomes)
        return bool(rows) and all(row.ok for row in rows)

    def surprises(self, *, mutants: bool) -> list[Outcome]:
        """Ours alone: mutants not killed, or alarms of right gradients."""
        mine = [o for o in self.outcomes if o.checker == OURS and o.surprising]
        return [o for o in mine if bool(o.kind) == mutants]

    def misnamed(self) -> list[Outcome]:
        return [o for o in self.outcomes if o.diagnosed is False]

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "rows": [row.as_dict() for row in figures(self.outcomes)],
            "ok": self.ok,
            "checkers": checkers(self.outcomes),
            "kinds": by_kind(self.outcomes),
            "not_killed": [asdict(o) for o in self.surprises(mutants=True)],
            "false_alarms": [asdict(o) for o in self.surprises(mutants=False)],
            "misnamed": [asdict(o) for o in self.misnamed()],
            "outcomes": [{**asdict(o), "text": ""} for o in self.outcomes],
            "skipped": [
                {"peer": name, "install": PEERS[name].install} for name in self.skipped
            ],
            "notes": self.notes,
            "quick": self.options.quick,
            "machine": machine(),
        }

    def table(self) -> str:
        parts = [self.name, *_targets(self), *_checkers(self), *_kinds(self)]
        parts += _surprises("not killed", self.surprises(mutants=True))
        parts += _surprises("false alarms", self.surprises(mutants=False))
        parts += _misnamed(self.misnamed())
        parts += [
            f"skipped: {PEERS[name].title} is not installed ({PEERS[name].install})"
            for name in self.skipped
        ]
        if self.options.quick:
            self.notes.append("quick: these figures mean nothing")
        return "\n".join([*parts, *self.notes, ""])


def _targets(report: MutantReport) -> list[str]:
    lines = [""]
    for row in figures(report.outcomes):
        sign = "<=" if row.at_most else ">="
        target = "" if row.target is None else f"{sign} {100 * row.target:.4g} %"
        said = "" if row.target is None else "yes" if row.ok else "NO"
        rate = f"{100 * row.rate:.2f} %"
        count = f"{row.count} of {row.of}"
        lines.append(f"{row.case:34}{rate:>9}  {count:>14}  {target:>10}  {said}")
    right = sum(o.kind is None and o.checker == OURS for o in report.outcomes)
    if right and right < CHECKS:
        lines.append(f"{right} checks of right gradients; {CHECKS} are asked for")
    return lines


def _checkers(report: MutantReport) -> list[str]:
    head = ("checker", "killed", "false alarms", "median s", "max s")
    lines = ["", f"{head[0]:22}" + "".join(f"{word:>16}" for word in head[1:])]
    for row in checkers(report.outcomes):
        killed = f"{row['killed']} / {row['mutants']}"
        alarms = f"{row['false_alarms']} / {row['controls']}"
        times = f"{row['median_s']:>16.4f}{row['max_s']:>16.3f}"
        lines.append(f"{row['checker']:22}{killed:>16}{alarms:>16}{times}")
    return lines


def _kinds(report: MutantReport) -> list[str]:
    """Kinds by checker, killed of all; the columns are numbered."""
    names = sorted({column(o) for o in report.outcomes}, key=order)
    table = by_kind(report.outcomes)
    lines = ["", *(f"({i}) {name}" for i, name in enumerate(names, start=1))]
    numbers = "".join(f"{f'({i})':>9}" for i in range(1, len(names) + 1))
    lines.append(f"{'kind':26}{numbers}")
    for kind in (name for name in KINDS if name in table):
        pairs = [table[kind].get(name) for name in names]
        cells = "".join(f"{f'{p[0]}/{p[1]}' if p else '-':>9}" for p in pairs)
        lines.append(f"{kind:26}{cells}")
    return lines


def _surprises(title: str, outcomes: list[Outcome]) -> list[str]:
    if not outcomes:
        return []
    lines = ["", f"{title}: {len(outcomes)}"]
    for o in outcomes[:SHOWN]:
        text = " ".join(o.text.split())[:160]
        lines.append(f"  {o.name} (seed {o.seed}): {o.verdict}. {text}")
    if len(outcomes) > SHOWN:
        lines.append(f"  and {len(outcomes) - SHOWN} more, in the JSON")
    return lines


def _misnamed(outcomes: list[Outcome]) -> list[str]:
    if not outcomes:
        return []
    lines = ["", f"diagnosis wrong or none: {len(outcomes)}"]
    lines += [f"  {o.name}: {o.diagnosis}" for o in outcomes[:SHOWN]]
    if len(outcomes) > SHOWN:
        lines.append(f"  and {len(outcomes) - SHOWN} more, in the JSON")
    return lines
