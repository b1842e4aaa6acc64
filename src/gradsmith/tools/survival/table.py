"""Results as tables: text that lines up, Markdown, HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any


def text(survival: Any, width: int) -> str:
    """One operation: a line for each transformation, with what there is to say."""
    cells = [
        (o.transformation, f"{o.verdict.symbol} {o.verdict}", o.detail)
        for o in survival.outcomes
    ]
    first, second = (max((len(c[i]) for c in cells), default=0) for i in (0, 1))
    lines = [
        _cut(f"  {name.ljust(first)}  {verdict.ljust(second)}  {detail}", width)
        for name, verdict, detail in cells
    ]
    notes = [f"  note: {survival.note}"] if survival.note else []
    return "\n".join([_title(survival), *lines, *notes, f"  {_summary(survival)}"])


def html(survival: Any) -> str:
    rows = [
        [o.transformation, f"{o.verdict.symbol} {o.verdict}", o.detail]
        for o in survival.outcomes
    ]
    notes = [survival.note] if survival.note else []
    caption = ". ".join([_title(survival), *notes, _summary(survival)])
    return _html_table(caption, ["transformation", "verdict", "detail"], rows)


def beside(columns: Any) -> str:
    """Several operations: aligned columns."""
    header, rows = _cells(columns)
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
        for line in (header, ["-" * width for width in widths], *rows)
    ]
    return "\n".join(lines)


def beside_html(columns: Any) -> str:
    header, rows = _cells(columns)
    return _html_table("", header, rows)


def markdown(columns: Any) -> str:
    header, rows = _cells(columns)
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |"
        for line in lines
    )


def _cells(columns: Any) -> tuple[list[str], list[list[str]]]:
    header = ["transformation", *(label for label, _ in columns.columns)]
    rows = [
        [name, *("" if v is None else f"{v.symbol} {v}" for v in verdicts)]
        for name, verdicts in columns.rows()
    ]
    return header, rows


def _title(survival: Any) -> str:
    return f"{survival.operation} in {survival.framework} {survival.version}"


def _summary(survival: Any) -> str:
    counts = Counter(outcome.verdict for outcome in survival.outcomes)
    return ", ".join(f"{n} {verdict}" for verdict, n in counts.items()) or "nothing run"


def _cut(line: str, width: int) -> str:
    line = line.rstrip()
    return line if len(line) <= width else line[: width - 1] + "…"


def _html_table(
    caption: str, header: Sequence[str], rows: Sequence[Sequence[str]]
) -> str:
    def line(tag: str, cells: Sequence[str]) -> str:
        inner = "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)
        return f"<tr>{inner}</tr>"

    head = f"<caption>{escape(caption)}</caption>" if caption else ""
    body = "".join(line("td", row) for row in rows)
    return (
        f"<table>{head}<thead>{line('th', header)}</thead><tbody>{body}</tbody></table>"
    )
