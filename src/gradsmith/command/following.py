"""A run that is shown while it goes on, and may be interrupted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from .check_display import CheckBar
from .display import Terminal
from .run import Run
from .status import Exit, Outputs, say, say_skipped


def followed(run: Run, listed: Callable[[], None]) -> bool:
    """Show the run while it goes on; False if it was interrupted."""
    say_skipped([*run.skipped, *run.journal.skipped])
    said = len(run.journal.skipped)
    try:
        with CheckBar(Terminal(stderr=True)) as bar:
            for event in run.events(listed):
                with suppress(OSError):  # nobody looks at standard error
                    bar.show(event)
    except KeyboardInterrupt:
        return False
    finally:
        say_skipped(run.journal.skipped[said:])
    return True


def ended(run: Run, outputs: Outputs, found: Exit, *, is_whole: bool) -> Exit:
    """Say what could not be written and how to go on; the status of all of it."""
    path = run.journal.path
    if run.journal.trouble:
        outputs.trouble.append(run.journal.trouble)
    outputs.say_trouble()
    if not is_whole:
        say(stopped(path))
    return outputs.reached(found, is_whole=is_whole)


def stopped(resume: object) -> str:
    if resume is None:
        return "stopped; with --resume FILE a run can be continued"
    return f"stopped; continue with --resume {resume}"
