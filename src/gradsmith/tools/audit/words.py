"""An audit in words."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from ...report.figures import percent, ulps
from ...report.result import (
    BAD,
    GOOD,
    OPEN,
    Block,
    Cell,
    Document,
    Figure,
    Item,
    More,
    Table,
)

if TYPE_CHECKING:
    from .model import Accuracy, Audit, Curve

LIMIT = 4.0  # ULP; what is further off is counted, and told apart in regions
LONG = 32  # of an input that is shown in the table
COLUMNS = ("", "max ULP", "mean ULP", "mean bits", "> 4 ULP", "worst input")


def document(report: Audit) -> Document:
    """A headline, a row each for the value and the gradients, and what fails where."""
    several = len(report.gradients) > 1
    rows = [("value", report.value)]
    for name, one in report.gradients.items():
        rows.append((f"gradient of {name}" if several else "gradient", one))
    caption = f"Errors of {report.operation} in units in the last place (ULP)"
    tones = tuple((GOOD if one.ok else BAD) if one.judged else "" for _, one in rows)
    table = Table(
        COLUMNS, tuple((name, *figures(one)) for name, one in rows), (1, 2, 3, 4),
        caption=caption, tones=tones,
    )  # fmt: skip
    inputs = Table(
        ("", "judged", "worst inputs"),
        tuple((name, f"{one.judged:,}", _worst(one)) for name, one in rows),
        (1,),
        caption=f"The worst inputs of {report.operation}",
    )
    blocks: list[Block] = [table, *plots(report)]
    blocks += [Item(mark, line) for mark, line in findings(report)]
    tone, symbol, verdict = verdict_of(report)
    return Document(
        headline(report),
        (*blocks, More("Worst inputs", (inputs,))),
        tone,
        title="Accuracy",
        subject=report.operation,
        framework=f"{report.framework} {report.version}",
        verdict=verdict,
        symbol=symbol,
        remark=remark(report),
        limit="" if report.ok else remark(report),
        cells=(cell("Value", report.value), cell("Gradient", report.gradient)),
    )


def verdict_of(report: Audit) -> tuple[str, str, str]:
    """Tone, symbol and verdict."""
    if report.is_open:
        return OPEN, "?", "could not tell"
    return (GOOD, "✓", "accurate") if report.ok else (BAD, "✗", "inaccurate")


def _worst(one: Accuracy) -> str:
    return ", ".join(f"`{x}`" for x in one.worst_inputs[:3])


def cell(what: str, one: Accuracy) -> Cell:
    """The largest error, for a table of several audits."""
    column, meaning = f"{what}, ULP", f"The largest error of the {what.lower()} in ULP"
    if not one.judged:
        return Cell(column, "not compared", meaning=meaning)
    if one.wrong:
        return Cell(column, "wrong", 1e300, BAD, meaning)
    by = min(one.max_ulp, 1e300)
    return Cell(column, ulps(one.max_ulp), by, GOOD if one.ok else BAD, meaning)


def remark(report: Audit) -> str:
    """Where it fails most, or by how much it is off."""
    parts = [("value", report.value), ("gradient", report.gradient)]
    judged = [(what, one) for what, one in parts if one.judged]
    off = [_loss(what, one) for what, one in judged if not one.ok]
    fine = ", ".join(f"{what} {ulps(one.max_ulp)} ULP" for what, one in judged)
    return "; ".join(off) or f"{fine} at most"


def _loss(what: str, one: Accuracy) -> str:
    if one.regions:
        return max(one.regions, key=lambda region: region.share).text
    at = f" at {one.worst_inputs[0]}" if one.worst_inputs else ""
    return f"{what} is up to {ulps(one.max_ulp)} ULP off{at}"


def plots(report: Audit) -> list[Figure]:
    """The error against the input, of the value and of the gradient."""
    parts = [("value", report.value), ("gradient", report.gradient)]
    curves = {what: one.curve for what, one in parts if one.curve and one.curve.x}
    inputs = _worth_showing([*curves.values()])
    return [
        Figure(
            "ulp",
            {
                "what": what,
                "accuracy": asdict(one),
                "inputs": inputs,
                "dtype": report.dtype,
            },
            f"Error of the {what} against the input: the largest (line) and the mean "
            "(dashed) of each group of neighbouring inputs",
        )
        for what, one in parts
        if what in curves
    ]


def _worth_showing(curves: list[Curve]) -> list[float]:
    """The inputs but for those near zero, as long as nothing is lost at these.

    Half of all floating-point numbers are smaller than 1.
    """
    pairs = [pair for c in curves for pair in zip(c.x, c.max_ulp, strict=True)]
    lost = [abs(x) for x, ulp in pairs if ulp > LIMIT and x]
    least = min([1e-3, *lost, max((abs(x) for x, _ in pairs), default=0) / 1e3]) / 10
    return [x for x, _ in pairs if abs(x) >= least]


def headline(report: Audit) -> str:
    _, mark, _ = verdict_of(report)
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


def figures(one: Accuracy) -> tuple[str, ...]:
    if not one.judged:
        return ("-", "-", "-", "-", "not compared")
    worst = one.worst_inputs[0] if one.worst_inputs and one.max_ulp > 0 else ""
    worst = worst if len(worst) <= LONG else worst[: LONG - 1] + "…"
    return (
        ulps(one.max_ulp),
        ulps(one.mean_ulp),
        f"{one.mean_bits:.2f}",
        percent(one.beyond),
        worst,
    )


def findings(report: Audit) -> list[tuple[str, str]]:
    """What is to be said, each with its mark."""
    found = [("✗", region.text) for region in report.value.regions]
    for one in report.gradients.values():
        found += [("✗", region.text) for region in one.regions]
    if report.undecided:
        found.append(("?", f"{report.undecided:,} undecided, {_UNDECIDED}"))
    if any(one.undecided and not one.judged for one in report.gradients.values()):
        found.append(("-", "pass the true function, such as one of SciPy: reference="))
    return found + [("-", note) for note in report.notes]


_UNDECIDED = "whose true values are not known: not judged"
