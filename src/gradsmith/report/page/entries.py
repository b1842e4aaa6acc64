"""What a page shows: one entry for each operation, the worst first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..figures import plural
from ..result import BAD, FAILED, GOOD, LIMITED, OPEN, Cell, Document, Result

TONES = (BAD, FAILED, OPEN, LIMITED, "", GOOD)  # what is wrong comes first
SYMBOLS = {BAD: "✗", FAILED: "!", OPEN: "?", LIMITED: "✓", GOOD: "✓", "": ""}
RIGHT = "right"
FEW = 2  # limits that are shown beside what is wrong or open


@dataclass(frozen=True)
class Entry:
    """One result: what it says, all of it as data, and its place in the page."""

    documents: tuple[Document, ...]
    data: Mapping[str, Any]
    anchor: str

    @property
    def main(self) -> Document:
        """The result itself; the other documents stand beside it."""
        return self.documents[0]

    @property
    def name(self) -> str:
        """The operation without its file."""
        return self.main.subject.rpartition(":")[2]

    @property
    def file(self) -> str:
        return self.main.subject.rpartition(":")[0]

    @property
    def symbol(self) -> str:
        return self.main.symbol or SYMBOLS[self.main.tone]

    @property
    def rank(self) -> int:
        return TONES.index(self.main.tone)

    @property
    def cells(self) -> dict[str, Cell]:
        """What stands in the overview, by column."""
        main = self.main
        first = Cell(main.title, main.remark, main.remark)
        cells = [cell for each in self.documents for cell in each.cells]
        return {cell.column: cell for cell in (first, *cells) if cell.column}

    @property
    def parts(self) -> list[tuple[str, Document]]:
        """The documents beside the result itself, each with an anchor."""
        return [(f"{self.anchor}-{i}", d) for i, d in enumerate(self.documents) if i]


@dataclass(frozen=True)
class Page:
    """All of them, the worst first."""

    title: str
    entries: tuple[Entry, ...]
    version: str = ""
    made: str = ""  # when
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def counts(self) -> dict[tuple[str, str, str], int]:
        """How many have a verdict, with its tone and symbol."""
        named = [each for each in self.entries if each.main.verdict]
        return Counter((e.main.verdict, e.main.tone, e.symbol) for e in named)

    @property
    def columns(self) -> list[Cell]:
        """The columns of the overview, each as one of its cells."""
        found: dict[str, Cell] = {}
        for cell in (cell for entry in self.entries for cell in entry.cells.values()):
            found.setdefault(cell.column, cell)
        return [*found.values()]

    @property
    def problems(self) -> tuple[list[Entry], list[Entry]]:
        """What is said at once, and limits, folded so as not to hide the table."""
        first = [e for e in self.entries if e.main.tone in (BAD, FAILED, OPEN)]
        rest = [e for e in self.entries if e.main.tone == LIMITED]
        return (first, rest) if first and len(rest) > FEW else (first + rest, [])

    @property
    def headline(self) -> str:
        """The verdict on all of it in a sentence.

        >>> Page("", ()).headline
        'No operation was found'
        """
        n, noun = len(self.entries), self._noun
        if not n:
            return "No operation was found"
        verdicts = [(e.main.tone, e.main.verdict) for e in self.entries]
        bad = [verdict for tone, verdict in verdicts if tone == BAD]
        good = [verdict for tone, verdict in verdicts if tone in (GOOD, LIMITED)]
        limited = [verdict for tone, verdict in verdicts if tone == LIMITED]
        if bad:
            word = bad[0] if len(set(bad)) == 1 else "not in order"
            return f"{plural(len(bad), f'{noun} is', f'{noun}s are')} {word}"
        if len(good) == n:
            word = good[0] if len(set(good)) == 1 else "in order"
            if 0 < len(limited) < n and set(good) == {RIGHT, limited[0]}:
                word = f"right, {len(limited)} with limits"
            return f"The {noun} is {word}" if n == 1 else f"All {n} {noun}s are {word}"
        if not any(tone for tone, _ in verdicts):
            return plural(n, noun)
        return f"No {noun} is wrong, but {n - len(good)} of {n} are open"

    @property
    def _noun(self) -> str:
        checked = {e.main.title for e in self.entries} <= {"Gradient check"}
        return "gradient" if checked else "operation"


def arranged(results: Iterable[Result]) -> tuple[Entry, ...]:
    """An entry for each, the worst first, each with an anchor of its own."""
    taken: Counter[str] = Counter()
    entries = []
    for result in results:
        documents = result.documents()
        name = _anchor(documents[0])
        taken[name] += 1
        anchor = name if taken[name] == 1 else f"{name}-{taken[name]}"
        entries.append(Entry(documents, result.as_dict(), anchor))
    return tuple(sorted(entries, key=lambda e: e.rank))


def _anchor(document: Document) -> str:
    """Made of letters that a link needs not escape: the operation and its place."""
    framework = document.framework.partition(" ")[0]
    words = f"{document.subject}-{framework}"
    return "op-" + re.sub(r"[^A-Za-z0-9_.]+", "-", words).strip("-.")
