"""`gradsmith audit` on a terminal: a bar, then table, regions in words, summary."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from ..report.figures import ulps
from .audited import Audited, Step
from .display import NARROW, Bar, show_table

COLUMNS = (
    "", "operation", "framework", "dtype", "inputs", "value", "gradient", "lost bits",
    "worst input", "time",
)  # fmt: skip
RIGHT = ("inputs", "value", "gradient", "lost bits", "time")
SPARED = ("framework", "inputs", "time")  # in narrow terminals


class AuditBar(Bar):
    """A bar for what is being audited, with the time that is left."""

    def __init__(self, console: Console) -> None:
        super().__init__(
            console,
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}", style="dim"),
            TimeElapsedColumn(),
            TextColumn("left", style="dim"),
            TimeRemainingColumn(),
        )

        self.label = ""

    def show(self, step: Step) -> None:
        """How many inputs are done."""
        if step.label != self.label:
            for task in self.progress.task_ids:
                self.progress.remove_task(task)
            self.label = step.label
            name = self.label if len(self.label) <= 24 else "…" + self.label[-23:]
            self.progress.add_task(name, total=None, rate="")
        bar = self.progress.tasks[-1]
        rate = f"{bar.speed / 1e6:.1f} M/s" if bar.speed and bar.speed >= 1e5 else ""
        self.progress.update(bar.id, completed=step.done, total=step.total, rate=rate)
        inputs = f": {step.done:,} of {step.total:,} inputs" if step.total else ""
        self.log(f"auditing {step.label}{inputs}")


def show(
    results: Sequence[Audited], limit: float, total: str, console: Console
) -> None:
    """The table, regions in words, and the summary."""
    if results:
        _show_table(results, limit, console)
    for result in results:
        _show_findings(result, limit, console)
    console.print(Text(total, style="bold"), soft_wrap=True)


def counts_of(results: Sequence[Audited], limit: float) -> dict[str, int]:
    """How many are within the limit, beyond it, and neither."""
    beyond = sum(result.beyond(limit) for result in results)
    failed = sum(not (r.is_judged or r.beyond(limit)) for r in results)
    counts = {
        f"within {limit:g} ULP": len(results) - beyond - failed,
        f"beyond {limit:g} ULP": beyond,
        "could not be judged": failed,
    }
    return {what: n for what, n in counts.items() if n}


def summary(results: Sequence[Audited], limit: float, seconds: float, none: str) -> str:
    if not results:
        return none
    words = ", ".join(f"{n} {what}" for what, n in counts_of(results, limit).items())
    return f"{words} in {seconds:.1f} s"


def _mark(result: Audited, limit: float) -> Text:
    if result.beyond(limit):
        return Text("✗", style="bold red")
    if not result.is_judged:
        return Text("!", style="magenta")
    return Text("✓", style="green")


def _cells(result: Audited, limit: float) -> list[Any]:
    report = result.report
    if report is None:
        return [_mark(result, limit), Text(result.label), *[Text("")] * 7,
                Text(f"{result.seconds:.1f} s")]  # fmt: skip
    value, gradient = report.value, report.gradient
    worst = gradient if gradient.judged else value
    every = "all " if report.exhaustive else ""
    return [
        _mark(result, limit),
        Text(result.label),
        Text(report.framework),
        Text(report.dtype),
        Text(f"{every}{report.points:,}"),
        *[_error(one, limit) for one in (value, gradient)],
        Text(f"{worst.mean_bits:.2f}" if worst.judged else "-"),
        Text(worst.worst_inputs[0] if worst.max_ulp > 0 else ""),
        Text(f"{result.seconds:.1f} s"),
    ]


def _error(one: Any, limit: float) -> Text:
    if not one.judged:
        return Text("-")
    is_bad = one.wrong or one.max_ulp > limit
    words = "wrong" if one.wrong else f"{ulps(one.max_ulp)} ULP"
    return Text(words, style="red" if is_bad else "")


def _show_table(results: Sequence[Audited], limit: float, console: Console) -> None:
    is_narrow = console.is_terminal and console.width < NARROW
    kept = [i for i, name in enumerate(COLUMNS) if not (is_narrow and name in SPARED)]
    rows = [_cells(result, limit) for result in results]
    show_table(
        console,
        [COLUMNS[i] for i in kept],
        [[row[i] for i in kept] for row in rows],
        right=RIGHT,
        folded=("operation",),
    )


def _show_findings(result: Audited, limit: float, console: Console) -> None:
    lines = [result.message, *result.details.splitlines()]
    if result.report is not None:
        from ..tools.audit.words import findings

        found = findings(result.report)
        lines = [f"{mark} {words}" for mark, words in found]
    if not any(lines):
        return
    console.print(Text.assemble("── ", _mark(result, limit), f" {result.label}"))
    for line in filter(None, lines):
        for part in wrap(line, console.width - 2, subsequent_indent="  ") or [""]:
            console.print(f"  {part}", highlight=False, markup=False, soft_wrap=True)
    console.print()
