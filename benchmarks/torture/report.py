"""The report: counts of each part, failures by cause, refusals by reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks._report import Options, machine

from .outcome import Outcome, causes, counts
from .parts import PARTS, Selection

SHOWN = 25  # causes of a part; all are in the JSON
VERDICTS = ("right", "refused", "as documented", "not judged", "wrong", "crash", "leak")


@dataclass
class TortureReport:
    """What became of every trial."""

    name: str
    options: Options
    selection: Selection
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def skipped(self) -> list[str]:
        return []

    @property
    def ok(self) -> bool:
        return bool(self.outcomes) and not any(o.is_bad for o in self.outcomes)

    def of(self, part: str) -> list[Outcome]:
        return [o for o in self.outcomes if o.part == part]

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "ok": self.ok,
            "seed": self.selection.seed,
            "rows": [self._row(part) for part in self.selection.parts],
            "failures": [asdict(o) for o in self.outcomes if o.is_bad],
            "skipped": [],
            "quick": self.options.quick,
            "machine": machine(),
        }

    def _row(self, part: str) -> dict[str, Any]:
        found = self.of(part)
        return {
            "part": part,
            "what": PARTS[part],
            "trials": len(found),
            "verdicts": counts(found),
            "checks": dict(Counter(check for o in found for check in o.checks)),
            "refused": _reasons(found, "refused"),
            "not_judged": _reasons(found, "not judged"),
            "ok": not any(o.is_bad for o in found),
        }

    def table(self) -> str:
        head = f"{'part':12}{'trials':>8}" + "".join(f"{v:>15}" for v in VERDICTS)
        lines = [f"{self.name}, seed {self.selection.seed}", "-" * len(head), head]
        for part in self.selection.parts:
            found = counts(self.of(part))
            cells = "".join(f"{found.get(v, 0):>15}" for v in VERDICTS)
            lines.append(f"{part:12}{sum(found.values()):>8}{cells}")
        lines.append("-" * len(head))
        for part in self.selection.parts:
            lines += self._details(part)
        if self.options.quick:
            lines.append("quick: a small share of the trials")
        return "\n".join([*lines, ""])

    def _details(self, part: str) -> list[str]:
        found = self.of(part)
        checks = Counter(check for o in found for check in o.checks)
        lines = [f"{part}: compared with {_listed(checks)}"] if checks else []
        for verdict in VERDICTS[1:]:
            groups = causes(o for o in found if o.verdict == verdict)
            lines += [f"{part}, {verdict}:"] if groups else []
            for cause, group in list(groups.items())[:SHOWN]:
                lines.append(f"  {len(group):5}  {cause}  ({group[0].name})")
                text = group[0].text if group[0].is_bad else ""
                lines += [f"         | {line}" for line in text.splitlines()]
            if len(groups) > SHOWN:
                lines.append(f"  and {len(groups) - SHOWN} more causes, in the JSON")
        return lines


def _reasons(outcomes: list[Outcome], verdict: str) -> dict[str, int]:
    groups = causes(o for o in outcomes if o.verdict == verdict)
    return {cause: len(group) for cause, group in groups.items()}


def _listed(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common())
