"""`gradsmith check` on a terminal: progress, then table, reports and summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from ..report.terminal import STYLES, text
from .display import NARROW, Bar, show_table
from .results import Status, TaskOutcome
from .run import Event

FINE = (Status.RIGHT, Status.DECLARED)
COLUMNS = ("verdict", "operation", "framework", "", "time")


class CheckBar(Bar):
    """A bar on a terminal, and above it at once what is not right."""

    def __init__(self, console: Console) -> None:
        super().__init__(
            console,
            TextColumn("checking"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[doing]}", style="dim"),
        )
        self.bar = self.progress.add_task("", total=None, doing="")
        self.found = self.done = 0

    def show(self, event: Event) -> None:
        if event.found:
            self.found += event.found
            self.progress.update(self.bar, total=self.found)
        if event.doing:
            doing = ", ".join(event.doing)
            self.progress.update(self.bar, doing=doing)
            far = (
                f"checked {self.done} of {self.found}; now" if self.found else "reading"
            )
            self.log(f"{far} {doing}")
        if event.result is not None:
            self.done += 1
            self.progress.advance(self.bar)
            if self.console.is_terminal and event.result.status not in FINE:
                self._tell(event.result)

    def _tell(self, result: TaskOutcome) -> None:
        words = f"  {result.label}  {result.framework}".rstrip()
        self.console.print(Text.assemble(_verdict(result), words), soft_wrap=True)


def show_results(results: Sequence[TaskOutcome], total: str, console: Console) -> None:
    """The table, what is to be said of those that are not right, and the summary."""
    _show_table(results, console)
    for result in results:
        if result.status not in FINE:
            _show_report(result, console)
    console.print(Text(total, style="bold"), soft_wrap=True)


def show_overview(results: Sequence[TaskOutcome], total: str, console: Console) -> None:
    """The table and the summary; the rest stands elsewhere."""
    _show_table(results, console)
    console.print(Text(total, style="bold"), soft_wrap=True)


def counts_of(results: Sequence[TaskOutcome]) -> dict[str, int]:
    """How many there are of each verdict, from the best to the worst."""
    counts = Counter(result.status for result in results)
    return {each.value: counts[each] for each in Status if counts[each]}


def summary(results: Sequence[TaskOutcome], seconds: float, none: str) -> str:
    if not results:
        return none
    parts = [f"{n} {status}" for status, n in counts_of(results).items()]
    return f"{'; '.join(parts)} in {seconds:.1f} s"


def _show_table(results: Sequence[TaskOutcome], console: Console) -> None:
    if not results:
        return
    rows: list[Any] = [(_verdict(r), *_cells(r)) for r in results]
    columns = COLUMNS
    if console.is_terminal and console.width < NARROW:  # remarks under the operations
        columns = ("verdict", "operation", "framework", "time")
        rows = [
            (verdict, Text("\n").join([operation, words]), framework, seconds)
            for verdict, operation, framework, words, seconds in rows
        ]
    show_table(console, columns, rows, folded=columns[1:])


def _verdict(result: TaskOutcome) -> Text:
    words = f"{result.status.symbol} {result.status}"
    return Text(words, style=STYLES[result.status.tone])


def _cells(result: TaskOutcome) -> tuple[Text, ...]:
    return tuple(
        map(
            Text,
            (
                result.label,
                result.framework,
                result.document().remark,
                f"{result.seconds:.1f} s",
            ),
        )
    )


def _show_report(result: TaskOutcome, console: Console) -> None:
    console.print(Text(f"── {result.label}", style=STYLES[result.status.tone]))
    words = text(result.document())
    # What was raised stands at the end of the traceback too
    if result.details and result.message.startswith(
        ("raised", "could not be imported")
    ):
        words = words.partition("\n")[2]
    console.print(words, soft_wrap=True, highlight=False, markup=False)
    console.print()
