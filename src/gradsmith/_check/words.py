"""A report in words."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .model import Finding, Report


def text(report: Report) -> str:
    lines = [headline(report)]
    for finding in report.findings:
        lines += [f"  ✗ {title(finding)}", *(f"    {line}" for line in body(finding))]
    lines += [f"  - {note}" for note in report.notes]
    return "\n".join(lines)


def headline(report: Report) -> str:
    seen = ""
    if report.resolution is not None:
        seen = f" (an error of {report.resolution:.0e} would have been seen)"
    return (
        f"{report.verdict.symbol} {report.operation} in {report.framework} "
        f"{report.version}: the gradient is {report.verdict}{seen}"
    )


def title(finding: Finding) -> str:
    places = [f"gradient of {finding.argument}" if finding.argument else ""]
    places.append(finding.scenario or "")
    where = ", ".join(filter(None, places))
    return f"{finding.what}: {where}" if where else finding.what


def body(finding: Finding) -> list[str]:
    lines = finding.message.splitlines()
    if finding.elements:
        lines.append(f"where: {finding.elements}")
    if finding.repair:
        lines.append(f"repair: {finding.repair}")
    return lines


def html(report: Report) -> str:
    return f"<pre>{escape(text(report))}</pre>"
