"""The table of all rows, for terminals, for documents and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import inf, isinf, isnan
from typing import Any

from benchmarks._measure import Progress
from benchmarks._peers import PEERS, versions
from benchmarks._report import Options, Report, machine
from benchmarks.accuracy.audit import POINTS, Audited, audited
from benchmarks.accuracy.judge import LIMIT, Figure
from benchmarks.accuracy.rows import OTHERS, PROMISED

NAMES = ("torch", "jax", "tensorflow")


@dataclass
class AccuracyReport:
    """What was found of all rows."""

    name: str
    options: Options
    promised: list[Audited] = field(default_factory=list)
    others: list[Audited] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the gradients that are promised are within 4 ULP."""
        return all(a.figures["gradsmith"][1].max_ulp <= LIMIT for a in self.promised)

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "ok": self.ok,
            "limit": LIMIT,
            "rows": [_as_dict(a, True) for a in self.promised]
            + [_as_dict(a, False) for a in self.others],
            "skipped": [
                {"peer": name, "install": PEERS[name].install} for name in self.skipped
            ],
            "quick": self.options.quick,
            "machine": machine(),
        }

    def table(self) -> str:
        return f"{self.name}\n{self.markdown()}\n"

    def markdown(self) -> str:
        peers = [p for p in NAMES if any(p in a.figures for a in self.promised)]
        parts = [_markdown(self.promised, peers), _markdown(self.others, peers)]
        notes = [f"- `{a.row.name}`: {a.row.note}." for a in self.others if a.row.note]
        found = versions()
        used = ", ".join(f"{PEERS[p].title} {found[p]}" for p in peers)
        by = f"NumPy {found['numpy']}" + (f", {used}" if used else "") + "."
        quick = ["quick: these figures mean nothing"] if self.options.quick else []
        skipped = [f"skipped: {PEERS[p].title} is not installed" for p in self.skipped]
        return "\n\n".join([*parts, *notes, by, *skipped, *quick])


def run(options: Options) -> AccuracyReport:
    report, progress = AccuracyReport("accuracy", options), Progress("accuracy")
    finder = Report("accuracy", options)
    peers = finder.available(*NAMES)
    rows = [*PROMISED, *OTHERS]
    for i, row in enumerate(rows):
        progress(f"{row.name}, {i + 1} of {len(rows)}")
        found = audited(row, peers, n=300 if options.quick else POINTS)
        (report.promised if row in PROMISED else report.others).append(found)
    report.skipped = finder.skipped
    return report


def _as_dict(found: Audited, promised: bool) -> dict[str, Any]:
    row = found.row
    return {
        "function": row.name,
        "promised": promised,
        "domains": [[_plain(end) for end in domain] for domain in row.domains],
        "figures": {
            name: {"value": _clean(value), "gradient": _clean(gradient)}
            for name, (value, gradient) in found.figures.items()
        },
        "refused": found.refused,
        "note": row.note,
    }


def _clean(figure: Figure) -> dict[str, Any]:
    return {name: _plain(value) for name, value in asdict(figure).items()}


def _plain(x: Any) -> Any:
    """JSON knows no infinity: a NaN where a number is true is None, as is no end."""
    return None if isinstance(x, float) and (isnan(x) or isinf(x)) else x


def _markdown(rows: Sequence[Audited], peers: Sequence[str]) -> str:
    titles = ["ours, all numbers", "ours", *(PEERS[p].title for p in peers)]
    head = ["function", "domain", "our gradient's worst input", *titles]
    lines = [head, ["---"] * 3 + ["---:"] * len(titles)]
    for found in rows:
        ours = found.figures["gradsmith"]
        cells = [f"`{found.row.name}`", _domain(found), f"`{_short(ours[1].worst)}`"]
        cells.append(" / ".join(_ulp(f.max_ulp, f.beyond) for f in ours))
        cells += [_cell(found, name) for name in ("gradsmith", *peers)]
        lines.append(cells)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _domain(found: Audited) -> str:
    if found.row.lines:
        return f"lines of {found.row.lines}"
    return ", ".join(_interval(*domain) for domain in found.row.domains)


def _interval(low: float, high: float) -> str:
    if (low, high) == (-inf, inf):
        return "all"
    ends = [f"{end:g}".replace("inf", "∞") for end in (low, high)]
    return f"{ends[0]} to {ends[1]}"


def _short(text: str) -> str:
    return text if len(text) < 40 else f"{text[:37]}..."


def _cell(found: Audited, name: str) -> str:
    if name in found.refused:
        return "refused"
    if name not in found.figures:
        return ""
    return " / ".join(_ulp(f.normal_ulp, f.normal_beyond) for f in found.figures[name])


def _ulp(largest: float, beyond: float) -> str:
    """The largest error, and the share of points beyond 4 ULP if there are any."""
    if isnan(largest):
        return "none"
    size = "NaN" if isinf(largest) else f"{largest:.2g}"
    if not beyond:
        return size
    share = f"{100 * beyond:.1f}" if beyond >= 0.0005 else "<0.1"
    return f"{size} ({share} %)"
