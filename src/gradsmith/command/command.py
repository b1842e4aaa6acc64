"""The commands and their options."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import click

from .. import __version__
from .audit import audit
from .check_display import show_results
from .display import Terminal
from .following import ended, followed
from .options import json_option, run_of, run_options, write_json
from .outputs import require_writable
from .page import ready_for, write_page
from .report import report
from .results import exit_status
from .run import Run
from .status import Outputs, with_statuses


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gradsmith")
def gradsmith() -> None:
    """Gradsmith: custom gradients in Python."""


@gradsmith.command()
@run_options
@json_option
@click.option("--html", "html_file", metavar="FILE", help="All results as a page.")
@with_statuses("all gradients are right", "at least one is wrong")
def check(
    json_file: str | None,
    html_file: str | None,
    resume: Path | None,
    allow_inconclusive: bool,
    strict: bool,
    **given: Any,
) -> None:
    """Check the gradients of all operations in files, folders and modules.

    A TARGET is a path (ops.py, src/), a module (package.ops), or one operation
    (ops.py:name, package.ops:name).
    """
    require_writable("--json", json_file)
    ready_for("--html", html_file)
    start, outputs = time.perf_counter(), Outputs()
    run = run_of(resume, **given)
    is_whole = followed(run)
    seconds = time.perf_counter() - start
    found = exit_status(
        run.results, allow_inconclusive=allow_inconclusive, strict=strict
    )
    if json_file != "-":
        outputs.show(lambda: show_results(run.results, seconds, Terminal()))
    if json_file is not None:
        status = outputs.reached(found, is_whole=is_whole)
        outputs.write(json_file, partial(_write_json, json_file, run, seconds, status))
    if html_file is not None:
        outputs.write(html_file, lambda: write_page(html_file, run, seconds))
    sys.exit(ended(run, outputs, found, is_whole=is_whole))


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
