"""An audit in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...report.result import BAD, GOOD, Document, Item, Table

if TYPE_CHECKING:
    from .model import Accuracy, Audit

LONG = 32  # of an input that is shown in the table
COLUMNS = ("", "max ULP", "mean ULP", "mean bits", "> 4 ULP", "worst input")


def document(report: Audit) -> Document:
    """A headline, a row each for the value and the gradients, and what fails where."""
    header, *rows = table(report)
    numbers = tuple(range(1, len(COLUMNS) - 1))
    items = [Item(mark, line) for mark, line in findings(report)]
    blocks = (Table(header, tuple(rows), numbers), *items)
    return Document(headline(report), blocks, GOOD if report.ok else BAD)


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
