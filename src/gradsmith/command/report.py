"""The command that makes the page."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from .check_display import show_overview
from .following import INTERRUPTED, followed, stopped
from .options import run_of, run_options
from .page import ready_for, write_page
from .results import exit_status


@click.command()
@run_options
@click.option(
    "-o",
    "--output",
    default="report.html",
    show_default=True,
    metavar="FILE",
    help="Where the page goes.",
)
def report(
    output: str, resume: Path | None, allow_inconclusive: bool, **given: Any
) -> None:
    """Make a page about all operations in files, folders and modules.

    It shows of each whether its gradient is right, where its rule survives, how
    accurate value and gradient are, the gradient against differences, and time beside
    autodiff. One file, readable offline. TARGETs are those of `gradsmith check`, and
    so is the exit status.
    """
    ready_for("-o", output)
    start = time.perf_counter()
    run = run_of(resume, closely=True, **given)
    is_whole = followed(run)
    seconds = time.perf_counter() - start
    status = exit_status(run.results, allow_inconclusive=allow_inconclusive)
    show_overview(run.results, seconds, Console())
    write_page(output, run, seconds)
    if not is_whole:
        click.echo(stopped(resume), err=True)
    sys.exit(status if is_whole else INTERRUPTED)
