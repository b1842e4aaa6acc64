"""`gradsmith audit`: its options, and what it comes to."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from ..core import arrays
from ..core.errors import GradsmithError
from .audit_display import AuditBar, show
from .audited import Auditing, cluster, status_of, tasks_of
from .display import Terminal
from .following import stopped
from .options import json_option, write_json
from .outputs import require_writable, write
from .page import ready_for, say_where
from .status import Outputs, say, say_skipped, with_statuses

TIME_LIMIT = 60.0  # seconds


@click.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "--domain",
    nargs=2,
    type=float,
    metavar="LOW HIGH",
    help="Inputs between these.  [default: all finite numbers]",
)
@click.option(
    "--dtype",
    type=click.Choice(["float16", "bfloat16", "float32", "float64"]),
    default="float32",
    show_default=True,
)
@click.option(
    "--exhaustive/--sampled",
    default=None,
    help="All numbers, with a proven maximum.  [default: of 16 bits]",
)
@click.option("--points", type=click.IntRange(1), help="How many, if sampled.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--max-ulp",
    type=click.FloatRange(0),
    default=4.0,
    show_default=True,
    help="The largest error allowed for exit status 0.",
)
@click.option(
    "--framework",
    type=click.Choice([*arrays.FRAMEWORKS]),
    help="Framework to run Gradsmith operations in.",
)
@click.option("-k", "--select", multiple=True, help="Only names that contain this.")
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Processes.")
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help=f"Without progress.  [default: {TIME_LIMIT:g}, none with --exhaustive]",
)
@click.option("--dask", metavar="ADDRESS", help="Of a cluster: tcp://host:8786.")
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Save the progress of --exhaustive here, and continue from it.",
)
@json_option
@click.option("--html", "html_file", metavar="FILE", help="All results as a page.")
@with_statuses("all are within --max-ulp", "something is beyond it")
def audit(
    json_file: str | None,
    html_file: str | None,
    max_ulp: float,
    dask: str | None,
    time_limit: float | None,
    **given: Any,
) -> None:
    """Measure the rounding error of values and gradients against certified ones.

    A TARGET is a path (ops.py, src/), a module (package.ops), one operation
    (ops.py:name), or any function of a module by its name (torch:sinc,
    torch.nn.functional:gelu, numpy:tanh).
    """
    require_writable("--json", json_file)
    ready_for("--html", html_file)
    require_writable("--resume", given["resume"])
    start, is_whole, outputs = time.perf_counter(), True, Outputs()
    targets, select = given.pop("targets"), given.pop("select")
    if time_limit is None and not given["exhaustive"]:
        time_limit = TIME_LIMIT
    skipped: list[str] = []
    try:
        with cluster(dask):
            pass
        tasks = tasks_of(targets, _options(**given), dask, skipped)
    except GradsmithError as error:
        raise click.UsageError(str(error)) from None
    say_skipped(skipped)
    auditing = Auditing(tasks, select, time_limit)
    try:
        with AuditBar(Terminal(stderr=True)) as bar:
            for step in auditing.steps():
                with suppress(OSError):  # nobody looks at standard error
                    bar.show(step)
    except KeyboardInterrupt:
        is_whole = False
    seconds = time.perf_counter() - start
    found = status_of(auditing.results, max_ulp)
    if json_file != "-":
        outputs.show(lambda: show(auditing.results, max_ulp, seconds, Terminal()))
    if json_file is not None:
        status = outputs.reached(found, is_whole=is_whole)
        outputs.write(
            json_file,
            lambda: _write(json_file, auditing, max_ulp, seconds, status),
        )
    if html_file is not None:
        outputs.write(
            html_file, lambda: _write_page(html_file, auditing, ", ".join(targets))
        )
    outputs.say_trouble()
    if not is_whole:
        say(stopped(given["resume"]))
    sys.exit(outputs.reached(found, is_whole=is_whole))


def _options(points: int | None, **given: Any) -> dict[str, Any]:
    """What was said, as `gs.audit` takes it."""
    if points is not None:
        given["points"] = points
    given["domain"] = given["domain"] or None
    return given


def _write(
    file: str, auditing: Auditing, limit: float, seconds: float, status: int
) -> None:
    document = {
        "exit_status": status,
        "max_ulp": limit,
        "seconds": round(seconds, 3),
        "results": [result.as_dict() for result in auditing.results],
    }
    write_json(file, document)


def _write_page(file: str, auditing: Auditing, targets: str) -> None:
    from ..report.page import page_of, render

    write(file, render(page_of(auditing.results, title=f"Accuracy of {targets}")))
    say_where(Path(file))
