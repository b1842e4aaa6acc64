"""What was found to be kept alive."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from ...core.arrays import title_of
from ...core.places import Place, line_name
from ...frameworks._protocol import Residual
from ...report.result import Block, Cell, Document, Figure, Line, Result, Table
from ..checkpoint.budget import words as size

_MOST = 20  # lines that are shown
_HEADER = ("kept", "share", "arrays", "operation", "line", "")


@dataclass(frozen=True)
class Row:
    """The arrays that one operation on one line keeps, all calls together."""

    operation: str
    place: Place | None
    arrays: int
    nbytes: int


@dataclass(frozen=True)
class MemoryReport(Result):
    """What a gradient keeps alive; `checkpointed` is what gs.checkpoint(fn) would keep.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> report = gs.memory(lambda x: np.sum(np.exp(x)), np.zeros(1000))
    >>> report.total, report.saved
    (8000, 8000)
    """

    function: str
    framework: str
    rows: tuple[Row, ...]
    checkpointed: int
    notes: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        return sum(row.nbytes for row in self.rows)

    @property
    def saved(self) -> int:
        """By how much checkpointing the function as a whole would lower it."""
        return self.total - self.checkpointed

    def by_function(self) -> dict[str, int]:
        """What the lines of each function keep: candidates for gs.checkpoint."""
        found: Counter[str] = Counter()
        for row in self.rows:
            found[(row.place and row.place.function) or "?"] += row.nbytes
        return dict(found.most_common())

    @property
    def ok(self) -> bool:
        """True: nothing is wrong with keeping arrays."""
        return True

    def document(self) -> Document:
        blocks: list[Block] = []
        if self.rows:
            rows = tuple(map(self._cells, self.rows[:_MOST]))
            blocks.append(Table(_HEADER, rows, (0, 1, 2), caption="What is kept"))
            blocks.append(self._figure())
        hidden = len(self.rows) - _MOST
        blocks += [Line(f"... and {hidden} more lines")] if hidden > 0 else []
        blocks += [Line(line, indent=0) for line in self._advice()]
        return Document(
            self._headline(),
            tuple(blocks),
            title="Memory",
            subject=self.function,
            framework=title_of(self.framework),
            remark=f"keeps {size(self.total)} alive",
            cells=(
                Cell(
                    "Kept",
                    size(self.total),
                    self.total,
                    meaning="What the gradient keeps alive",
                ),
            ),
        )

    def _headline(self) -> str:
        where = title_of(self.framework)
        return (
            f"The gradient of {self.function} in {where} keeps {size(self.total)} alive"
        )

    def _cells(self, row: Row) -> tuple[str, ...]:
        share = row.nbytes / max(self.total, 1)
        place = _line(row.place, os.path.relpath) or "?"
        source = row.place.source if row.place else ""
        return (
            size(row.nbytes), f"{share:.0%}", str(row.arrays), row.operation, place,
            source if len(source) < 50 else f"{source[:47]}...",
        )  # fmt: skip

    def _advice(self) -> list[str]:
        """What checkpointing would save, as a whole and by function."""
        lines = []
        if self.saved > 0:
            lines.append(
                f"gs.checkpoint({self.function}) would keep {size(self.checkpointed)}: "
                f"{size(self.saved)} less, for running it once more"
            )
        parts = self.by_function()
        if len(parts) > 1:
            told = ", ".join(f"{name} {size(n)}" for name, n in [*parts.items()][:5])
            lines.append(f"by function: {told}")
        return [*lines, *self.notes]

    def _figure(self) -> Figure:
        """The lines that keep most."""
        rows = [
            {
                "label": " ".join(
                    filter(None, (row.operation, _line(row.place, os.path.basename)))
                ),
                "nbytes": row.nbytes,
                "size": size(row.nbytes),
            }
            for row in self.rows[:_MOST]
        ]
        return Figure("memory", {"rows": rows})

    def svg(self) -> str:
        """A plot of the lines that keep most, as the text of an SVG file."""
        from ...report.plots import svg_file

        return svg_file(self._figure())

    def plot(self, *, ax: Any = None) -> Any:
        """Draw the lines that keep most by Matplotlib, and return its Axes."""
        from ...report.plots.axes import plot

        return plot([self._figure()], ax, title=self._headline())


def _line(place: Place | None, path: Callable[[str], str]) -> str:
    return line_name(place.file, place.line, path) if place else ""


def gathered(kept: Iterable[Residual]) -> tuple[Row, ...]:
    """One row for each operation and line, the largest first."""
    sizes: Counter[tuple[str, Place | None]] = Counter()
    arrays: Counter[tuple[str, Place | None]] = Counter()
    for each in kept:
        sizes[each.operation, each.place] += each.nbytes
        arrays[each.operation, each.place] += 1
    return tuple(
        Row(operation, place, arrays[operation, place], size)
        for (operation, place), size in sizes.most_common()
    )
