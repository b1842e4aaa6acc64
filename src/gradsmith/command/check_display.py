"""`gradsmith check` on a terminal: progress, then table, reports and summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from .display import NARROW, Bar, show_table
from .results import Result, Status
from .run import Event

STYLES = {
    Status.RIGHT: "green",
    Status.WRONG: "bold red",
    Status.INCONCLUSIVE: "yellow",
    Status.FAILED: "magenta",
}
COLUMNS = ("verdict", "operation", "framework", "", "time")


class CheckBar(Bar):
    """A bar on stderr, and above it a line for each result as it comes."""

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
        self.found = 0

    def show(self, event: Event) -> None:
        if event.found:
            self.found += event.found
            self.progress.update(self.bar, total=self.found)
        if event.doing:
            self.progress.update(self.bar, doing=", ".join(event.doing))
        if event.result is not None:
            self.progress.advance(self.bar)
            where = f"  {event.result.framework}".rstrip()
            words = f"  {event.result.label}{where}"
            line = Text.assemble(_verdict(event.result), words)
            self.console.print(line, soft_wrap=True)


def show_results(results: Sequence[Result], seconds: float, console: Console) -> None:
    """The table, what is to be said of those that are not right, and the summary."""
    _show_table(results, console)
    for result in results:
        if result.status in (Status.WRONG, Status.FAILED, Status.INCONCLUSIVE):
            _show_report(result, console)
    console.print(Text(summary(results, seconds), style="bold"))


def show_overview(results: Sequence[Result], seconds: float, console: Console) -> None:
    """The table and the summary; the rest stands elsewhere."""
    _show_table(results, console)
    console.print(Text(summary(results, seconds), style="bold"))


def summary(results: Sequence[Result], seconds: float) -> str:
    if not results:
        return "no operation was found"
    counts = Counter(result.status for result in results)
    parts = [f"{counts[status]} {status}" for status in Status if counts[status]]
    return f"{', '.join(parts)} in {seconds:.1f} s"


def _show_table(results: Sequence[Result], console: Console) -> None:
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


def _verdict(result: Result) -> Text:
    words = f"{result.status.symbol} {result.status}"
    return Text(words, style=STYLES[result.status])


def _cells(result: Result) -> tuple[Text, ...]:
    return tuple(
        map(
            Text,
            (result.label, result.framework, remark(result), f"{result.seconds:.1f} s"),
        )
    )


def remark(result: Result) -> str:
    """The most important thing about a result, in a line."""
    report = result.report
    if report is None:
        return (result.message or result.text).partition("\n")[0]
    if report["findings"]:
        finding = report["findings"][0]
        where = f"{finding['argument']}: " if finding["argument"] else ""
        return where + finding["message"].partition("\n")[0]
    notes = [note.removeprefix("without an example; ") for note in report["notes"]]
    if result.status is Status.INCONCLUSIVE:
        return next(iter(notes), "")
    seen = report["resolution"]
    if seen is not None:
        notes = [note for note in notes if "guessed" in note]
        notes.insert(0, f"an error of {float(seen):.0e} would show")
    return "; ".join(notes)


def _show_report(result: Result, console: Console) -> None:
    console.print(Text(f"── {result.label}", style=STYLES[result.status]))
    # What was raised stands at the end of the traceback too
    is_there = result.message.startswith(("raised", "could not be imported"))
    message = "" if is_there and result.details else result.message
    parts = [result.text, message, result.details]
    if result.output and result.status is not Status.WRONG:
        parts.append("\n".join(["It printed:", *_printed(result.output)]))
    for part in filter(None, parts):
        console.print(part, soft_wrap=True, highlight=False, markup=False)
    console.print()


def _printed(output: str) -> Iterator[str]:
    """What the user's code printed; it is called often, and may repeat itself."""
    for line, same in groupby(output.splitlines()):
        times = len(list(same))
        yield f"  | {line}" + (f"  ({times} times)" if times > 1 else "")
