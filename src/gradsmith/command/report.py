"""The command that makes the page."""

from __future__ import annotations

import sys
from typing import Any

import click

from .check import checked_as
from .check_display import show_overview
from .display import Terminal
from .following import ended
from .options import Configured, run_options
from .page import ready_for, write_page
from .status import Outputs, with_statuses


@click.command(cls=Configured, short_help="Run all tools, and write one HTML page.")
@run_options
@click.option(
    "-o",
    "--output",
    default="report.html",
    show_default=True,
    metavar="FILE",
    help="The file to write.",
)
@with_statuses("all gradients are right", "at least one is wrong")
def report(output: str, **given: Any) -> None:
    """Run all tools on the operations in files, folders and modules.

    The page is one file, readable offline. For each operation it shows whether the
    gradient is right, where the rule survives, how accurate value and gradient are, the
    gradient beside differences, and its time beside autodiff. TARGETs are those of
    `gradsmith check`.
    """
    ready_for("-o", output)
    checked, outputs = checked_as(closely=True, **given), Outputs()
    run = checked.run
    outputs.show(lambda: show_overview(run.results, checked.total, Terminal()))
    outputs.write(output, lambda: write_page(output, run, checked.seconds))
    sys.exit(ended(run, outputs, checked.status, is_whole=checked.is_whole))
