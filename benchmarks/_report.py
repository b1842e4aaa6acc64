"""Results: rows of ours beside a peer's, as a table or as JSON."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks._peers import PEERS, is_installed, versions
from gradsmith.core import is_compiled


@dataclass(frozen=True)
class Options:
    """What the command line asks of every benchmark."""

    quick: bool = False
    peers: tuple[str, ...] = tuple(PEERS)
    selection: Any = None  # what part of a corpus; None is all of it


@dataclass(frozen=True)
class Row:
    """One comparison. Without a target it is there to be read, and is ok."""

    case: str
    ours: float
    peer: float
    peer_name: str
    target: float | None
    unit: str

    @property
    def ratio(self) -> float:
        return self.ours / self.peer

    @property
    def ok(self) -> bool:
        return self.target is None or self.ratio <= self.target


@dataclass
class Report:
    """All rows of one benchmark."""

    name: str
    options: Options
    rows: list[Row] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)  # what could not be measured
    notes: list[str] = field(default_factory=list)

    def available(self, *names: str) -> list[str]:
        """The installed ones of these peers; the others are noted as skipped."""
        asked = [name for name in names if name in self.options.peers]
        self.skipped += [name for name in asked if not is_installed(name)]
        return [name for name in asked if is_installed(name)]

    @property
    def ok(self) -> bool:
        return all(row.ok for row in self.rows) and not self.refused

    def as_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "rows": [
                {**asdict(row), "ratio": row.ratio, "ok": row.ok} for row in self.rows
            ],
            "skipped": [
                {"peer": name, "install": PEERS[name].install} for name in self.skipped
            ],
            "refused": self.refused,
            "notes": self.notes,
            "quick": self.options.quick,
            "machine": machine(),
        }

    def table(self) -> str:
        header = ("case", "ours", "peer", "", "ratio", "target", "ok")
        lines = [header, *map(_cells, self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        left = (0, 3)  # text; the other columns are numbers
        table = [
            "  ".join(
                cell.ljust(width) if i in left else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        ]
        rule = "-" * len(table[0])
        notes = [
            f"skipped: {PEERS[name].title} is not installed ({PEERS[name].install})"
            for name in self.skipped
        ]
        notes += [f"refused: {what}" for what in self.refused] + self.notes
        notes.append(f"the engine is {engine()}")
        if self.options.quick:
            notes.append("quick: these figures mean nothing")
        return "\n".join(
            [self.name, rule, table[0], rule, *table[1:], rule, *notes, ""]
        )


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.case,
        f"{row.ours:.4g} {row.unit}",
        f"{row.peer:.4g} {row.unit}",
        row.peer_name,
        f"{row.ratio:.3f}",
        "" if row.target is None else f"<= {row.target:g}",
        "" if row.target is None else "yes" if row.ok else "NO",
    )


def machine() -> dict[str, Any]:
    """What the figures depend on besides the code."""
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "versions": versions(),
        "engine": engine(),
    }


def engine() -> str:
    return "compiled" if is_compiled() else "not compiled"


def _processor() -> str:
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
