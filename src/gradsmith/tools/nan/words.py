"""A report in words: as text, and as HTML for a notebook."""

from __future__ import annotations

from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model import NanReport

WIDTH = 88
NAMES = {"nan": "NaN", "inf": "inf"}


def text(report: NanReport) -> str:
    """The whole report: what was born where, of what, and what to do."""
    lines = [headline(report)]
    if report.where is not None:
        within = f", in {report.where.function}" if report.where.function else ""
        lines.append(f"  {report.where}{within}")
        lines += [f"      {report.where.source}"] if report.where.source else []
    for label, line in facts(report):
        lines += _wrapped(f"{label}: {line}", 2)
    for note in report.notes:
        lines += _wrapped(f"- {note}", 2)
    return "\n".join(lines)


def headline(report: NanReport) -> str:
    start = f"{report.function} in {report.framework} {report.version}:"
    if report.ok:
        return f"✓ {start} the value and the gradients are finite"
    return f"✗ {start} {born(report)}"


def born(report: NanReport) -> str:
    """What was born where, in a few words."""
    kind = NAMES[report.kind or "nan"]
    if report.phase == "argument":
        return f"{kind} was given, in {report.operation}"
    if report.phase == "constant":
        return f"{kind} came in as a constant, in {report.operation}"
    if report.operation is None:
        return f"{kind} in {', '.join(report.reaches)}"
    of = "in"
    if report.phase == "backward":
        sums = report.operation.startswith("the sum")
        of = "in the backward pass, in" if sums else "in the backward pass of"
    return f"{kind} is born {of} {report.operation}"


def facts(report: NanReport) -> list[tuple[str, str]]:
    """What there is to say, each with what it is."""
    rows = [
        ("went in", "; ".join(str(x) for x in report.inputs if x.indices)),
        ("came out", "; ".join(str(y) for y in report.outputs if y.indices)),
        ("why", report.explanation),
        ("repair", report.repair),
        ("it reaches", ", ".join(report.reaches)),
    ]
    if report.phase in ("argument", "constant"):
        rows = [row for row in rows if row[0] != "came out"]
    return [(label, line) for label, line in rows if line]


def _wrapped(line: str, indent: int) -> list[str]:
    first, rest = " " * indent, " " * (indent + 2)
    return wrap(
        line, WIDTH, initial_indent=first, subsequent_indent=rest,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def html(report: NanReport) -> str:
    """A heading, the line, and a table of what there is to say."""
    colour = "#1a7f37" if report.ok else "#cf222e"
    place = ""
    if report.where is not None:
        place = (
            f"<div><code>{escape(str(report.where))}</code></div>"
            f"<pre>{escape(report.where.source)}</pre>"
        )
    rows = "".join(
        f"<tr><th scope='row'>{escape(label)}</th>"
        f"<td style='text-align:left'>{escape(line)}</td></tr>"
        for label, line in facts(report)
    )
    table = f"<table>{rows}</table>" if rows else ""
    notes = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
    return (
        f"<div><b style='color:{colour}'>{escape(headline(report))}</b>{place}{table}"
        f"{f'<ul>{notes}</ul>' if notes else ''}</div>"
    )
