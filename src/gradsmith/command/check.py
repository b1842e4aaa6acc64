"""`gradsmith check`: its options, and what it comes to."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from .check_display import counts_of, show_results, summary
from .entries import Finished, of_check
from .following import ended, followed
from .options import (
    Configured,
    require_known,
    run_of,
    run_options,
    say_unmatched,
    targets_of,
)
from .page import ready_for, write_page
from .results import exit_status
from .run import Run
from .status import Exit, Outputs, with_statuses
from .writing import Output, format_option, json_option, outputs_of, write_all


@click.command(cls=Configured, short_help="Check the gradients in files and folders.")
@run_options
@format_option
@json_option
@click.option("--html", "html_file", metavar="FILE", help="All results as a page.")
@with_statuses("all gradients are right", "at least one is wrong")
def check(
    formats: tuple[Output, ...],
    json_file: str | None,
    html_file: str | None,
    strict: bool,
    **given: Any,
) -> None:
    """Check the gradients of all operations in files, folders and modules.

    A TARGET is a path (ops.py, src/), a module (package.ops), or one operation
    (ops.py:name, package.ops:name). The default are the paths of [tool.gradsmith] in
    pyproject.toml, which can also set other options.
    """
    asked = outputs_of(formats, json_file)
    ready_for("--html", html_file)
    checked, outputs = checked_as(strict=strict, **given), Outputs()
    run, is_whole = checked.run, checked.is_whole
    finished = _finished(checked, strict=strict)
    write_all(asked, finished, outputs, checked.status, is_whole=is_whole)
    if html_file is not None:
        page = partial(write_page, html_file, run, checked.seconds)
        outputs.write(html_file, page)
    sys.exit(ended(run, outputs, checked.status, is_whole=is_whole))


@dataclass(frozen=True)
class Checked:
    """A run that has ended, or was interrupted."""

    run: Run
    total: str
    seconds: float
    status: Exit
    is_whole: bool


def checked_as(
    *,
    resume: Path | None,
    allow_inconclusive: bool,
    strict: bool,
    targets: tuple[str, ...],
    changed: str | None,
    exclude: tuple[str, ...],
    allow_empty: bool,
    **given: Any,
) -> Checked:
    """Run what the options ask for."""
    start = time.perf_counter()
    chosen = targets_of(targets, changed, exclude, allow_empty)
    run = run_of(resume, chosen=chosen, **given)
    is_whole = followed(run, lambda: require_known(run.found, chosen, run.is_all_read))
    if is_whole:
        say_unmatched(run)
    seconds = time.perf_counter() - start
    status = exit_status(
        run.results,
        allow_inconclusive=allow_inconclusive,
        strict=strict,
        allow_empty=chosen.allow_empty,
    )
    total = summary(run.results, seconds, chosen.none)
    return Checked(run, total, seconds, status, is_whole)


def _finished(checked: Checked, *, strict: bool) -> Finished:
    run, total, seconds = checked.run, checked.total, checked.seconds
    results = run.results

    def show(console: Console) -> None:
        show_results(results, total, console)

    return Finished(
        "check",
        "gradients",
        tuple(of_check(each, strict=strict) for each in results),
        counts_of(results),
        total,
        seconds,
        {
            "seed": run.options.seed,
            "seconds": round(seconds, 3),
            "results": [result.as_dict() for result in results],
        },
        show,
    )
