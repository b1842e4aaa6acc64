"""`gradsmith audit`: its options, and what it comes to."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from ..core.errors import GradsmithError
from .audit_display import AuditBar, counts_of, show, summary
from .audited import Auditing, cluster, status_of, tasks_of
from .display import Terminal
from .entries import Finished, of_audit
from .following import stopped
from .options import (
    Configured,
    config_of,
    framework_option,
    inconclusive_option,
    require_known,
    seed_option,
    select_option,
    target_options,
    targets_of,
)
from .outputs import require_writable, write
from .page import ready_for, say_where
from .status import Outputs, say, say_skipped, with_statuses
from .writing import Output, format_option, json_option, outputs_of, write_all

TIME_LIMIT = 60.0  # seconds


@click.command(
    cls=Configured, short_help="Measure how many digits they lose, and where."
)
@target_options
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
    help="All numbers, with a proven maximum.  [default: 16-bit dtypes only]",
)
@click.option("--points", type=click.IntRange(1), help="Number of inputs, if sampled.")
@seed_option
@click.option(
    "--max-ulp",
    type=click.FloatRange(0),
    default=4.0,
    show_default=True,
    help="The largest error allowed for exit status 0.",
)
@framework_option("all")
@select_option
@click.option("--jobs", type=click.IntRange(1), metavar="N", help="Processes.")
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="Longest time without progress.  "
    f"[default: {TIME_LIMIT:g}, none with --exhaustive]",
)
@click.option("--dask", metavar="ADDRESS", help="A Dask cluster: tcp://host:8786.")
@click.option(
    "--resume",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Save the progress of --exhaustive here, and continue from it.",
)
@inconclusive_option
@format_option
@json_option
@click.option("--html", "html_file", metavar="FILE", help="All results as a page.")
@with_statuses("all are within --max-ulp", "something is beyond it")
def audit(
    formats: tuple[Output, ...],
    json_file: str | None,
    html_file: str | None,
    max_ulp: float,
    dask: str | None,
    time_limit: float | None,
    framework: tuple[str, ...],
    select: tuple[str, ...],
    targets: tuple[str, ...],
    changed: str | None,
    exclude: tuple[str, ...],
    allow_empty: bool,
    allow_inconclusive: bool,
    **given: Any,
) -> None:
    """Measure the rounding error of values and gradients against certified ones.

    A TARGET is a path (ops.py, src/), a module (package.ops), one operation
    (ops.py:name), or any function of a module by its name (torch:sinc,
    torch.nn.functional:gelu, numpy:tanh). Without any, the paths of [tool.gradsmith]
    in pyproject.toml are audited, which sets other options too.
    """
    asked = outputs_of(formats, json_file)
    ready_for("--html", html_file)
    require_writable("--resume", given["resume"])
    start, is_whole, outputs = time.perf_counter(), True, Outputs()
    chosen = targets_of(targets, changed, exclude, allow_empty)
    if time_limit is None and not given["exhaustive"]:
        time_limit = TIME_LIMIT
    skipped: list[str] = []
    try:
        with cluster(dask):
            pass
        tasks = tasks_of(
            chosen.names, _options(framework, **given), dask, skipped,
            defining=chosen.allow_empty, exclude=chosen.exclude,
        )  # fmt: skip
    except GradsmithError as error:
        raise click.UsageError(str(error)) from None
    say_skipped(skipped)
    operations = config_of(click.get_current_context()).operations
    auditing = Auditing(tasks, select, time_limit, framework, operations)
    try:
        with AuditBar(Terminal(stderr=True)) as bar:
            for step in auditing.steps(
                lambda: require_known(auditing.found, chosen, auditing.is_all_read)
            ):
                with suppress(OSError):  # nobody looks at standard error
                    bar.show(step)
    except KeyboardInterrupt:
        is_whole = False
    seconds = time.perf_counter() - start
    found = status_of(
        auditing.results,
        max_ulp,
        allow_inconclusive=allow_inconclusive,
        allow_empty=chosen.allow_empty,
    )
    finished = _finished(auditing, max_ulp, seconds, chosen.none)
    write_all(asked, finished, outputs, found, is_whole=is_whole)
    if html_file is not None:
        title = ", ".join(chosen.names)
        outputs.write(html_file, lambda: _write_page(html_file, auditing, title))
    outputs.say_trouble()
    if not is_whole:
        say(stopped(given["resume"]))
    sys.exit(outputs.reached(found, is_whole=is_whole))


def _options(framework: tuple[str, ...], **given: Any) -> dict[str, Any]:
    """What was said, as `gs.audit` takes it; a function of a module has one framework.

    Those of files get theirs when they are known.
    """
    said = {key: x for key, x in given.items() if x is not None and x != ()}
    only = framework[0] if len(framework) == 1 and framework[0] != "all" else None
    return {**said, "framework": only}


def _finished(auditing: Auditing, limit: float, seconds: float, none: str) -> Finished:
    results = auditing.results
    total = summary(results, limit, seconds, none)
    return Finished(
        "audit",
        "accuracy",
        tuple(of_audit(each, limit) for each in results),
        counts_of(results, limit),
        total,
        seconds,
        {
            "max_ulp": limit,
            "seconds": round(seconds, 3),
            "results": [result.as_dict() for result in results],
        },
        lambda console: show(results, limit, total, console),
    )


def _write_page(file: str, auditing: Auditing, targets: str) -> None:
    from ..report.page import page_of, render

    write(file, render(page_of(auditing.results, title=f"Accuracy of {targets}")))
    say_where(Path(file))
