"""What commands share on a terminal: a progress bar on stderr, a table on stdout."""

from __future__ import annotations

import errno
import time
from collections.abc import Sequence
from typing import Any, Self

from rich.console import Console
from rich.progress import Progress, ProgressColumn
from rich.table import Table

from ..report.terminal import aligned

FIRST, EVERY = 2.0, 10.0  # seconds until a line of progress, and between two
NARROW = 100  # columns, below which some of a table stands elsewhere, or not at all


class Terminal(Console):
    """A console that leaves it to the command what a closed pipe means."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(errno.EPIPE, "the pipe is closed")


class Bar:
    """A progress bar; where stderr is not a terminal, a line now and then."""

    def __init__(self, console: Console, *columns: ProgressColumn) -> None:
        self.console = console
        self.start = time.monotonic()
        self.next = self.start + FIRST
        self.progress = Progress(*columns, console=console, transient=True)

    def __enter__(self) -> Self:
        if self.console.is_terminal:
            self.progress.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self.console.is_terminal:
            self.progress.stop()

    def log(self, words: str) -> None:
        """Where no bar is shown, how far it is, so that it does not seem to hang."""
        now = time.monotonic()
        if not self.console.is_terminal and now >= self.next:
            self.next = now + EVERY
            words = f"{words} ({now - self.start:.0f} s)"
            self.console.print(words, soft_wrap=True, highlight=False, markup=False)


def show_table(
    console: Console,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    right: Sequence[str] = (),
    folded: Sequence[str] = (),
) -> None:
    """Rows under their heads; as aligned text if nobody looks at a terminal.

    `right` are the columns of numbers, `folded` those that may take several lines.
    """
    if not console.is_terminal:
        for line in aligned([[str(cell) for cell in row] for row in (columns, *rows)]):
            console.print(line, soft_wrap=True, highlight=False, markup=False)
        console.print()
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        justify: Any = "right" if name in right else "left"
        is_folded = not folded or name in folded
        table.add_column(name, justify=justify, overflow="fold", no_wrap=not is_folded)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print()
