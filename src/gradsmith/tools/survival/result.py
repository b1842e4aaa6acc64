"""What was found: an outcome for each transformation, and all of them together."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from . import table


class Verdict(StrEnum):
    """What became of a rule under a transformation."""

    HONOURED = "honoured"  # the result came from the rule
    DROPPED = "dropped"  # another result, without a word
    WRONG = "wrong"  # neither the rule's result nor one without it
    REFUSED = "refused"  # an error: the rule was not used, and you know it
    UNCLEAR = "unclear"  # nothing can be told, and the detail says why

    @property
    def symbol(self) -> str:
        return _SYMBOLS[self]


_SYMBOLS = {
    Verdict.HONOURED: "✓",
    Verdict.DROPPED: "✗",
    Verdict.WRONG: "!",
    Verdict.REFUSED: "-",
    Verdict.UNCLEAR: "?",
}
SILENT = (Verdict.DROPPED, Verdict.WRONG)


@dataclass(frozen=True)
class Outcome:
    """One transformation: what became of the rule, and what there is to say on it."""

    transformation: str
    verdict: Verdict
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing went wrong in silence; a clear error is fine."""
        return self.verdict not in SILENT


@dataclass(frozen=True)
class Survival:
    """Where the rule of one operation is honoured, dropped or refused.

    `note` says what limits the findings, if anything does.
    """

    operation: str
    framework: str
    version: str
    outcomes: tuple[Outcome, ...]
    note: str = ""

    @property
    def ok(self) -> bool:
        """Whether no transformation dropped the rule or gave a wrong result."""
        return all(outcome.ok for outcome in self.outcomes)

    def __getitem__(self, transformation: str) -> Outcome:
        for outcome in self.outcomes:
            if outcome.transformation == transformation:
                return outcome
        known = ", ".join(outcome.transformation for outcome in self.outcomes)
        raise KeyError(f"{transformation!r} is none of {known}")

    def count(self, verdict: str) -> int:
        """How many transformations had a verdict."""
        return sum(outcome.verdict == verdict for outcome in self.outcomes)

    def table(self, *, width: int = 100) -> str:
        """The outcomes as aligned text; details are cut to the width."""
        return table.text(self, width)

    def as_dict(self) -> dict[str, Any]:
        """All of it in dicts, lists and strings."""
        return {"ok": self.ok, **asdict(self)}

    def to_json(self) -> str:
        """`as_dict` as a JSON text."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False)

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        return table.html(self)


@dataclass(frozen=True)
class SurvivalTable:
    """Several operations side by side: a row for each transformation."""

    columns: tuple[tuple[str, Survival], ...]

    @property
    def ok(self) -> bool:
        """Whether all of them are."""
        return all(survival.ok for _, survival in self.columns)

    def rows(self) -> list[tuple[str, list[Verdict | None]]]:
        """Each transformation with a verdict per column; None where it was not run."""
        found = [
            {o.transformation: o.verdict for o in survival.outcomes}
            for _, survival in self.columns
        ]
        names = dict.fromkeys(name for column in found for name in column)
        return [(name, [column.get(name) for column in found]) for name in names]

    def markdown(self) -> str:
        """A Markdown table."""
        return table.markdown(self)

    def as_dict(self) -> dict[str, Any]:
        """All of it in dicts, lists and strings, by column."""
        return {label: survival.as_dict() for label, survival in self.columns}

    def to_json(self) -> str:
        """`as_dict` as a JSON text."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False)

    def __str__(self) -> str:
        return table.beside(self)

    def _repr_html_(self) -> str:
        return table.beside_html(self)
