"""What was found: an outcome for each transformation, and all of them together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ...report.result import (
    BAD,
    GOOD,
    OPEN,
    Block,
    Cell,
    Document,
    Fact,
    Line,
    Result,
    Table,
)
from ...report.terminal import aligned, text


class Fate(StrEnum):
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
    Fate.HONOURED: "✓",
    Fate.DROPPED: "✗",
    Fate.WRONG: "!",
    Fate.REFUSED: "-",
    Fate.UNCLEAR: "?",
}
_TONES = {
    Fate.HONOURED: GOOD,
    Fate.DROPPED: BAD,
    Fate.WRONG: BAD,
    Fate.REFUSED: "",
    Fate.UNCLEAR: OPEN,
}
SILENT = (Fate.DROPPED, Fate.WRONG)


@dataclass(frozen=True)
class Outcome:
    """One transformation: what became of the rule, and what there is to say on it."""

    transformation: str
    verdict: Fate
    detail: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing went wrong in silence; a clear error is fine."""
        return self.verdict not in SILENT


@dataclass(frozen=True)
class Survival(Result):
    """Where the rule of one operation is honoured, dropped or refused.

    `note` says what limits the findings, if anything does.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> step = gs.with_gradient(np.sign, lambda dy, y, x: dy, surrogate="through")
    >>> found = gs.survives(step, np.array([0.5, -2.0]), only=["grad", "jvp"])
    >>> found.ok, found["jvp"].verdict, found.count("honoured")
    (True, <Fate.HONOURED: 'honoured'>, 2)
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

    def document(self, *, width: int = 100) -> Document:
        rows = [
            (o.transformation, f"{o.verdict.symbol} {o.verdict}", o.detail)
            for o in self.outcomes
        ]
        header = ("transformation", "verdict", "detail")
        blocks: list[Block] = []
        if rows:
            caption = f"Where the rule of {self.operation} survives"
            tones = tuple(_TONES[outcome.verdict] for outcome in self.outcomes)
            blocks.append(Table(header, tuple(rows), (), width, False, caption, tones))
        blocks += [Fact("note", self.note)] if self.note else []
        counts = Counter(outcome.verdict for outcome in self.outcomes)
        words = ", ".join(f"{n} {verdict}" for verdict, n in counts.items())
        blocks.append(Line(words or "nothing run"))
        framework = f"{self.framework} {self.version}"
        return Document(
            f"{self.operation} in {framework}",
            tuple(blocks),
            GOOD if self.ok else BAD,
            title="Survival",
            subject=self.operation,
            framework=framework,
            verdict="not dropped" if self.ok else "dropped",
            remark=self._losses or words,
            limit=self._losses,
            cells=(self._cell(),),
        )

    @property
    def _losses(self) -> str:
        lost = ", ".join(o.transformation for o in self.outcomes if not o.ok)
        return f"the rule is dropped in silence, or wrong, under {lost}" if lost else ""

    def _cell(self) -> Cell:
        kept, lost = (
            self.count(Fate.HONOURED),
            sum(not o.ok for o in self.outcomes),
        )
        words = f"{kept} of {len(self.outcomes)}" + (f", {lost} lost" if lost else "")
        tone = BAD if lost else GOOD if kept else ""
        meaning = "How many transformations honour the rule"
        return Cell("Survival", words, kept - 1000 * lost, tone, meaning)

    def table(self, *, width: int = 100) -> str:
        """The outcomes as aligned text; details are cut to the width."""
        return text(self.document(width=width))


@dataclass(frozen=True)
class SurvivalTable(Result):
    """Several operations side by side: a row for each transformation.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> step = gs.with_gradient(np.sign, lambda dy, y, x: dy, surrogate="through")
    >>> found = gs.survives(step, np.array([0.5, -2.0]), only=["grad", "jvp"])
    >>> print(gs.survival_table([found]))
    transformation  sign
    --------------  ----------
    grad            ✓ honoured
    jvp             ✓ honoured
    """

    columns: tuple[tuple[str, Survival], ...]

    @property
    def ok(self) -> bool:
        """Whether all of them are."""
        return all(survival.ok for _, survival in self.columns)

    def rows(self) -> list[tuple[str, list[Fate | None]]]:
        """Each transformation with a verdict per column; None where it was not run."""
        found = [
            {o.transformation: o.verdict for o in survival.outcomes}
            for _, survival in self.columns
        ]
        names = dict.fromkeys(name for column in found for name in column)
        return [(name, [column.get(name) for column in found]) for name in names]

    def document(self) -> Document:
        labels = ", ".join(label for label, _ in self.columns)
        tone = GOOD if self.ok else BAD
        return Document("", (Table(*self._cells()),), tone, "Survival", labels)

    def __str__(self) -> str:
        header, rows = self._cells()
        lines = [*aligned([header, *rows])]
        widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
        return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])

    def markdown(self) -> str:
        """A Markdown table."""
        header, rows = self._cells()
        lines = [header, ("---",) * len(header), *rows]
        escaped = [[cell.replace("|", r"\|") for cell in line] for line in lines]
        return "\n".join(f"| {' | '.join(line)} |" for line in escaped)

    def _cells(self) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
        header = ("transformation", *(label for label, _ in self.columns))
        rows = [
            (name, *("" if v is None else f"{v.symbol} {v}" for v in verdicts))
            for name, verdicts in self.rows()
        ]
        return header, tuple(rows)

    def as_dict(self) -> dict[str, Any]:
        """All of it in dicts, lists and strings, by column."""
        return {label: survival.as_dict() for label, survival in self.columns}
