"""A report in words: as text, and as HTML for a notebook."""

from __future__ import annotations

from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING

from .model import Verdict

if TYPE_CHECKING:
    from .model import Finding, Report

WIDTH = 88


def text(report: Report) -> str:
    """The whole report; what is wrong comes first."""
    lines = [headline(report)]
    for finding in report.findings:
        lines += _wrapped(f"✗ {title(finding)}", 2)
        for line in body(finding):
            lines += _wrapped(line, 4)
    for note in report.notes:
        lines += _wrapped(f"- {note}", 2)
    looked = looked_at(report) or "nothing"
    lines += _wrapped(f"looked at: {looked}; seed {report.seed}", 2)
    return "\n".join(lines)


def headline(report: Report) -> str:
    seen = ""
    if report.resolution is not None:
        seen = f" (a relative error of {report.resolution:.0e} would have been seen)"
    verdict = {
        Verdict.RIGHT: f"the gradient is right{seen}",
        Verdict.WRONG: "the gradient is wrong",
        Verdict.INCONCLUSIVE: "inconclusive",
    }[report.verdict]
    where = f"{report.operation} in {report.framework} {report.version}"
    return f"{report.verdict.symbol} {where}: {verdict}"


def title(finding: Finding) -> str:
    """What is wrong, with which argument, on which inputs."""
    places = [f"the gradient of {finding.argument}" if finding.argument else ""]
    places.append(f"for {finding.output}" if finding.output else "")
    places.append(f"with {finding.scenario}" if finding.scenario else "")
    where = " ".join(filter(None, places))
    if not where:
        return finding.what
    return f"{finding.what}{':' if finding.argument else ''} {where}"


def body(finding: Finding) -> list[str]:
    lines = finding.message.splitlines()
    if finding.elements:
        lines.append(f"where: {finding.elements}")
    if finding.error is not None and finding.noise is not None:
        lines.append(
            f"off by {finding.error:.2g} of its size along random directions; rounding "
            f"would explain {finding.noise:.1g}"
        )
    if finding.repair:
        lines.append(f"repair: {finding.repair}")
    return lines


def looked_at(report: Report) -> str:
    """What was looked at, each with the number of inputs."""
    scenarios: dict[str, set[str]] = {}
    for look in report.looks:
        scenarios.setdefault(look.what, set()).add(look.scenario)
    return ", ".join(
        f"{what} on {len(each)} inputs" if len(each) > 1 else what
        for what, each in scenarios.items()
    )


def _wrapped(line: str, indent: int) -> list[str]:
    first, rest = " " * indent, " " * (indent + 2)
    # What is aligned by its author (expected, got) stays as it is.
    if line.startswith("  ") or len(line) + indent <= WIDTH:
        return [first + line]
    return wrap(line, WIDTH, initial_indent=first, subsequent_indent=rest)


# --- notebooks -----------------------------------------------------------------------

_COLOURS = {
    Verdict.RIGHT: "#1a7f37",
    Verdict.WRONG: "#cf222e",
    Verdict.INCONCLUSIVE: "#9a6700",
}


def html(report: Report) -> str:
    """A heading with the verdict, and a table of what is wrong."""
    colour = _COLOURS[report.verdict]
    rows = "".join(
        f"<tr><td>{escape(title(finding))}</td><td style='text-align:left'>"
        f"{'<br>'.join(map(escape, body(finding)))}</td></tr>"
        for finding in report.findings
    )
    table = f"<table>{rows}</table>" if rows else ""
    notes = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
    return (
        f"<div><b style='color:{colour}'>{escape(headline(report))}</b>{table}"
        f"{f'<ul>{notes}</ul>' if notes else ''}"
        f"<small>looked at: {escape(looked_at(report))}; seed {report.seed}</small>"
        "</div>"
    )
