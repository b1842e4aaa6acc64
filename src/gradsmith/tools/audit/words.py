"""An audit in words: as text for terminals, and as HTML for a notebook."""

from __future__ import annotations

from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model import Accuracy, Audit

WIDTH = 88
LONG = 32  # of an input that is shown in the table
COLUMNS = ("", "max ULP", "mean ULP", "mean bits", "> 4 ULP", "worst input")


def text(report: Audit) -> str:
    """A headline, a row each for the value and the gradients, and what fails where."""
    rows = table(report)
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    lines = [headline(report)]
    for name, *numbers, worst in rows:
        cells = [f"{x:>{w}}" for x, w in zip(numbers, widths[1:-1], strict=True)]
        lines.append(f"  {name:<{widths[0]}}  {'  '.join(cells)}  {worst}".rstrip())
    for mark, line in findings(report):
        lines += _wrapped(f"{mark} {line}", 2)
    return "\n".join(lines)


def headline(report: Audit) -> str:
    mark = "✓" if report.ok else "✗"
    start = f"{mark} {report.operation} in {report.framework} {report.version}"
    every = "all " if report.exhaustive else ""
    return f"{start}, {report.dtype}: {every}{report.points:,} inputs{_within(report)}"


def _within(report: Audit) -> str:
    domain = report.domain
    if domain is None:
        return ""
    if isinstance(domain, dict):
        parts = [f"{name} in [{a:g}, {b:g}]" for name, (a, b) in domain.items()]
        return ", " + ", ".join(parts)
    return f" in [{domain[0]:g}, {domain[1]:g}]"


def table(report: Audit) -> list[tuple[str, ...]]:
    """The figures in rows, with their heads."""
    several = len(report.gradients) > 1
    rows = [("value", report.value)]
    for name, one in report.gradients.items():
        rows.append((f"gradient of {name}" if several else "gradient", one))
    return [COLUMNS, *[(name, *figures(one)) for name, one in rows]]


def figures(one: Accuracy) -> tuple[str, ...]:
    if not one.judged:
        return ("-", "-", "-", "-", "not compared")
    worst = one.worst_inputs[0] if one.worst_inputs and one.max_ulp > 0 else ""
    worst = worst if len(worst) <= LONG else worst[: LONG - 1] + "…"
    return (
        number(one.max_ulp),
        number(one.mean_ulp),
        f"{one.mean_bits:.2f}",
        f"{float(f'{100 * one.beyond:.2g}'):g} %",
        worst,
    )


def number(x: float) -> str:
    """An error in ULP, with as many digits as it is worth.

    >>> number(0.5012), number(1025.3), number(8388608.0), number(float("inf"))
    ('0.50', '1,025', '8.4e+06', 'inf')
    """
    if x < 100 or x != x:
        return f"{x:.2f}"
    return f"{x:,.0f}" if x < 1e5 else f"{x:.1e}" if x < float("inf") else "inf"


def findings(report: Audit) -> list[tuple[str, str]]:
    """What is to be said, each with its mark."""
    found = [("✗", region.text) for region in report.value.regions]
    for one in report.gradients.values():
        found += [("✗", region.text) for region in one.regions]
    if report.undecided:
        found.append(("?", f"{report.undecided:,} undecided, {_UNDECIDED}"))
    return found + [("-", note) for note in report.notes]


_UNDECIDED = "whose true values are not known: not judged"


def _wrapped(line: str, indent: int) -> list[str]:
    return wrap(
        line, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def html(report: Audit) -> str:
    """A heading, the figures, and what fails where."""
    colour = "#1a7f37" if report.ok else "#cf222e"
    head, *rows = table(report)
    heads = "".join(f"<th scope='col'>{escape(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr><th scope='row'>{escape(row[0])}</th>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in row[1:])
        + "</tr>"
        for row in rows
    )
    items = "".join(f"<li>{m} {escape(line)}</li>" for m, line in findings(report))
    return (
        f"<div><b style='color:{colour}'>{escape(headline(report))}</b>"
        f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        f"{f'<ul>{items}</ul>' if items else ''}</div>"
    )
