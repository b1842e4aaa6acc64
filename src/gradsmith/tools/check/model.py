"""What a check found: verdict, findings, notes, and what it could have seen."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """Is the gradient right?"""

    RIGHT = "right"
    WRONG = "wrong"
    INCONCLUSIVE = "inconclusive"

    @property
    def symbol(self) -> str:
        return {"right": "✓", "wrong": "✗", "inconclusive": "?"}[self.value]


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with a gradient.

    `what` is the promise that is broken ("first order", "linearity", "shape", ...),
    `message` says in words how. `error` is relative, and `noise` is the largest that
    rounding could explain. `diagnosis` names the mistake if the gradient without it
    was verified ("sign", "factor", "transposed", ...), and `repair` what to do.
    """

    what: str
    message: str
    argument: str | None = None
    output: str | None = None
    elements: str | None = None
    scenario: str | None = None
    error: float | None = None
    noise: float | None = None
    diagnosis: str | None = None
    repair: str | None = None


@dataclass(frozen=True)
class Look:
    """One thing that was looked at, on which inputs, and how closely.

    `resolution` is the smallest relative error that would have been seen.
    """

    what: str
    scenario: str
    verdict: Verdict
    resolution: float | None = None
    detail: str = ""


@dataclass(frozen=True)
class Report:
    """The result of `check`."""

    operation: str
    framework: str
    version: str
    verdict: Verdict
    findings: tuple[Finding, ...]
    looks: tuple[Look, ...]
    notes: tuple[str, ...]
    seed: int
    resolution: float | None = None
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the gradient is right; neither wrong nor inconclusive."""
        return self.verdict is Verdict.RIGHT

    def as_dict(self) -> dict[str, Any]:
        """All of it in dicts, lists, strings and numbers."""
        return {"ok": self.ok, **asdict(self)}

    def to_json(self) -> str:
        """`as_dict` as a JSON text."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False)

    def __str__(self) -> str:
        from .words import text

        return text(self)

    def _repr_html_(self) -> str:
        from .words import html

        return html(self)
