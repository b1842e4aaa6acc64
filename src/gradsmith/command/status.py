"""The exit statuses, which are told apart, and how a command ends."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import Any

import click

from ..report.terminal import clean


class Exit(IntEnum):
    """What an exit status means; of several the first in `ORDER` is taken."""

    FINE = 0
    WRONG = 1
    USAGE = 2
    UNJUDGED = 3
    UNWRITTEN = 4
    INTERNAL = 5
    INTERRUPTED = 130  # as shells say it of Ctrl-C


ORDER = (Exit.INTERRUPTED, Exit.WRONG, Exit.UNWRITTEN, Exit.UNJUDGED, Exit.FINE)

_MEANINGS = {
    Exit.FINE: "{fine}",
    Exit.WRONG: "{wrong}",
    Exit.USAGE: "wrong usage or configuration: no results",
    Exit.UNJUDGED: "something could not be judged",
    Exit.UNWRITTEN: "an output could not be written",
    Exit.INTERNAL: "an internal error of Gradsmith",
    Exit.INTERRUPTED: "stopped by Ctrl-C",
}


def with_statuses(
    fine: str, wrong: str, only: Sequence[Exit] = tuple(Exit)
) -> Callable[[Any], Any]:
    """Add the statuses to the help of a command."""
    rows = [f"  {status.value:<4} {_MEANINGS[status]}" for status in only]
    # \b keeps the lines of a paragraph apart
    table = "\n".join(rows).format(fine=fine, wrong=wrong)

    def add(command: Any) -> Any:
        said = inspect.cleandoc(command.__doc__)
        command.__doc__ = f"{said}\n\n\b\nExit status:\n{table}\n"
        return command

    return add


class Outputs:
    """What a run writes; what can't be written is told, and its status is another."""

    def __init__(self) -> None:
        self.trouble: list[str] = []

    def write(self, name: str | Path, writes: Callable[[], object]) -> None:
        """To a file, or to standard output (-)."""
        if str(name) == "-":
            self.show(writes)
        else:
            self._try(name, writes)

    def show(self, shows: Callable[[], object]) -> None:
        """To standard output, as far as that can be written to."""
        if not self._try("standard output", lambda: (shows(), sys.stdout.flush())):
            _discard_stdout()

    def _try(self, name: str | Path, writes: Callable[[], object]) -> bool:
        try:
            writes()
        except OSError as error:
            self.trouble.append(f"{name}: {error.strerror or error}")
            return False
        return True

    def reached(self, found: Exit, *, is_whole: bool) -> Exit:
        """The status of all of it, by what was found."""
        reached = {found}
        if not is_whole:
            reached.add(Exit.INTERRUPTED)
        if self.trouble:
            reached.add(Exit.UNWRITTEN)
        return next(status for status in ORDER if status in reached)

    def say_trouble(self) -> None:
        for words in self.trouble:
            say(f"could not write {words}")


def _discard_stdout() -> None:
    """What is left in the buffer would fail again when Python ends."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(words: str) -> None:
    """To standard error, if anybody listens."""
    with suppress(OSError):
        click.echo(clean(words), err=True)


def say_skipped(skipped: Sequence[str], shown: int = 10) -> None:
    """Name what was skipped, a few of them if there are many."""
    for words in skipped[:shown]:
        say(f"skipped {words}")
    if len(skipped) > shown:
        say(f"skipped {len(skipped) - shown} more")
