"""The commands and their options."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from .. import __version__
from .audit import audit
from .check_display import show_results
from .following import INTERRUPTED, followed, stopped
from .options import json_option, require_file, run_of, run_options, write_json
from .page import ready_for, write_page
from .report import report
from .results import exit_status
from .run import Run


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gradsmith")
def gradsmith() -> None:
    """Gradsmith: custom gradients in Python."""


@gradsmith.command()
@run_options
@json_option
@click.option("--html", "html_file", metavar="FILE", help="All results as a page.")
def check(
    json_file: str | None,
    html_file: str | None,
    resume: Path | None,
    allow_inconclusive: bool,
    **given: Any,
) -> None:
    """Check the gradients of all operations in files, folders and modules.

    A TARGET is a path (ops.py, src/), a module (package.ops), or one operation
    (ops.py:name, package.ops:name).

    Exit status: 0 all right, 1 something is wrong, 2 something could not be judged.
    """
    require_file("--json", json_file)
    ready_for("--html", html_file)
    start = time.perf_counter()
    run = run_of(resume, **given)
    is_whole = followed(run)
    seconds = time.perf_counter() - start
    status = exit_status(run.results, allow_inconclusive=allow_inconclusive)
    status = status if is_whole else INTERRUPTED
    if json_file is not None:
        _write_json(json_file, run, seconds, status)
    if json_file != "-":
        show_results(run.results, seconds, Console())
    if html_file is not None:
        write_page(html_file, run, seconds)
    if not is_whole:
        click.echo(stopped(resume), err=True)
    sys.exit(status)


def _write_json(file: str, run: Run, seconds: float, status: int) -> None:
    document = {
        "exit_status": status,
        "seed": run.options.seed,
        "seconds": round(seconds, 3),
        "results": [result.as_dict() for result in run.results],
    }
    write_json(file, document)


for _command in (audit, report):
    gradsmith.add_command(_command)
