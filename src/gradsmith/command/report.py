"""The command that makes the page."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from .check_display import show_overview, summary
from .display import Terminal
from .following import ended, followed
from .options import Configured, run_of, run_options, say_unmatched, targets_of
from .page import ready_for, write_page
from .results import exit_status
from .status import Outputs, with_statuses


@click.command(cls=Configured, short_help="A page that shows all of it.")
@run_options
@click.option(
    "-o",
    "--output",
    default="report.html",
    show_default=True,
    metavar="FILE",
    help="Where the page goes.",
)
@with_statuses("all gradients are right", "at least one is wrong")
def report(
    output: str,
    resume: Path | None,
    allow_inconclusive: bool,
    strict: bool,
    targets: tuple[str, ...],
    changed: str | None,
    exclude: tuple[str, ...],
    allow_empty: bool,
    **given: Any,
) -> None:
    """Make a page about all operations in files, folders and modules.

    It shows of each whether its gradient is right, where its rule survives, how
    accurate value and gradient are, the gradient against differences, and time beside
    autodiff. One file, readable offline. TARGETs are those of `gradsmith check`.
    """
    ready_for("-o", output)
    start, outputs = time.perf_counter(), Outputs()
    chosen = targets_of(targets, changed, exclude, allow_empty)
    run = run_of(resume, closely=True, chosen=chosen, **given)
    is_whole = followed(run)
    if is_whole:
        say_unmatched(run)
    seconds = time.perf_counter() - start
    found = exit_status(
        run.results,
        allow_inconclusive=allow_inconclusive,
        strict=strict,
        allow_empty=chosen.allow_empty,
    )
    total = summary(run.results, seconds, chosen.none)
    outputs.show(lambda: show_overview(run.results, total, Terminal()))
    outputs.write(output, lambda: write_page(output, run, seconds))
    sys.exit(ended(run, outputs, found, is_whole=is_whole))
