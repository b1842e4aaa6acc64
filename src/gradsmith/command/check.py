"""`gradsmith check`: its options, and what it comes to."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from .check_display import counts_of, show_results, summary
from .entries import Finished, of_check
from .following import ended, followed
from .options import Configured, Targets, run_of, run_options, say_unmatched, targets_of
from .page import ready_for, write_page
from .results import exit_status
from .run import Run
from .status import Outputs, with_statuses
from .writing import Output, format_option, json_option, outputs_of, write_all


@click.command(cls=Configured, short_help="Are the gradients of operations right?")
@run_options
@format_option
@json_option
@click.option("--html", "html_file", metavar="FILE", help="All results as a page.")
@with_statuses("all gradients are right", "at least one is wrong")
def check(
    formats: tuple[Output, ...],
    json_file: str | None,
    html_file: str | None,
    resume: Path | None,
    allow_inconclusive: bool,
    strict: bool,
    targets: tuple[str, ...],
    changed: str | None,
    exclude: tuple[str, ...],
    allow_empty: bool,
    **given: Any,
) -> None:
    """Check the gradients of all operations in files, folders and modules.

    A TARGET is a path (ops.py, src/), a module (package.ops), or one operation
    (ops.py:name, package.ops:name). Without any, the paths of [tool.gradsmith] in
    pyproject.toml are checked, which sets other options too.
    """
    asked = outputs_of(formats, json_file)
    ready_for("--html", html_file)
    start, outputs = time.perf_counter(), Outputs()
    chosen = targets_of(targets, changed, exclude, allow_empty)
    run = run_of(resume, chosen=chosen, **given)
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
    finished = _finished(run, chosen, seconds, strict=strict)
    write_all(asked, finished, outputs, found, is_whole=is_whole)
    if html_file is not None:
        outputs.write(html_file, lambda: write_page(html_file, run, seconds))
    sys.exit(ended(run, outputs, found, is_whole=is_whole))


def _finished(run: Run, chosen: Targets, seconds: float, *, strict: bool) -> Finished:
    results = run.results
    total, counts = summary(results, seconds, chosen.none), counts_of(results)

    def show(console: Console) -> None:
        show_results(results, total, console)

    return Finished(
        "check",
        "gradients",
        tuple(of_check(each, strict=strict) for each in results),
        counts,
        total,
        seconds,
        {
            "seed": run.options.seed,
            "seconds": round(seconds, 3),
            "results": [result.as_dict() for result in results],
        },
        show,
    )
