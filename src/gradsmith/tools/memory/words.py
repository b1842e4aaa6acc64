"""A report of memory as text, as HTML for a notebook, and as a plot."""

from __future__ import annotations

import os
import sys
from html import escape
from typing import TYPE_CHECKING, Any

from ...core.arrays import title_of
from ..checkpoint.budget import words as size

if TYPE_CHECKING:
    from .model import MemoryReport, Row

_BAR = 20
_MOST = 20  # lines that are shown
_HEADER = ("kept", "share", "arrays", "operation", "line", "")


def headline(report: MemoryReport) -> str:
    where = title_of(report.framework)
    return (
        f"The gradient of {report.function} in {where} keeps {size(report.total)} alive"
    )


def advice(report: MemoryReport) -> list[str]:
    """What checkpointing would save, as a whole and by function."""
    lines = []
    if report.saved > 0:
        lines.append(
            f"gs.checkpoint({report.function}) would keep {size(report.checkpointed)}: "
            f"{size(report.saved)} less, for running it once more"
        )
    parts = report.by_function()
    if len(parts) > 1:
        told = ", ".join(f"{name} {size(n)}" for name, n in [*parts.items()][:5])
        lines.append(f"by function: {told}")
    return [*lines, *report.notes]


def _cells(report: MemoryReport, row: Row) -> tuple[str, ...]:
    share = row.nbytes / max(report.total, 1)
    place = f"{os.path.relpath(row.place.file)}:{row.place.line}" if row.place else "?"
    source = row.place.source if row.place else ""
    return (
        size(row.nbytes), f"{share:.0%}", str(row.arrays), row.operation, place,
        source if len(source) < 50 else f"{source[:47]}...",
    )  # fmt: skip


def _lines(report: MemoryReport) -> list[tuple[str, ...]]:
    return [_cells(report, row) for row in report.rows[:_MOST]]


def text(report: MemoryReport) -> str:
    rows = [_HEADER, *_lines(report)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    right = (0, 1, 2)
    table = [
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    hidden = len(report.rows) - _MOST
    more = [f"... and {hidden} more lines"] if hidden > 0 else []
    body = ["  " + line for line in [*table, *more]] if report.rows else []
    return "\n".join([headline(report), *body, *advice(report)])


def show(report: MemoryReport) -> None:
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        sys.stdout.write(text(report) + "\n")
        return
    table = Table(title=headline(report), title_justify="left", box=None)
    for i, name in enumerate(_HEADER):
        table.add_column(name, justify="right" if i < 3 else "left", overflow="fold")
    for cells in _lines(report):
        table.add_row(*cells)
    console = Console()
    console.print(table)
    for line in advice(report):
        console.print(line, highlight=False)


def svg(report: MemoryReport) -> str:
    """Bars, one for each line of code; the text is the reader's colour."""
    rows = report.rows[:_MOST]
    largest = max((row.nbytes for row in rows), default=1) or 1
    height = 34 + 24 * len(rows)
    parts: list[Any] = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 {height}" '
        'font-family="sans-serif" font-size="12" fill="currentColor">',
        f'<text x="4" y="18" font-weight="bold">{escape(headline(report))}</text>',
    ]
    for i, row in enumerate(rows):
        y, width = 30 + 24 * i, 300 * row.nbytes / largest
        place = ""
        if row.place:
            place = f"{os.path.basename(row.place.file)}:{row.place.line}"
        label = f"{row.operation}  {place}"
        parts += [
            f'<rect x="4" y="{y}" width="{max(width, 1):.1f}" height="18" '
            'fill="#4c78a8"/>',
            f'<text x="{width + 10:.1f}" y="{y + 13}">{escape(size(row.nbytes))}  '
            f"{escape(label)}</text>",
        ]
    return "\n".join([*parts, "</svg>"])


def html(report: MemoryReport) -> str:
    told = "".join(f"<li>{escape(line)}</li>" for line in advice(report))
    return f"<div>{svg(report)}<ul>{told}</ul></div>"
