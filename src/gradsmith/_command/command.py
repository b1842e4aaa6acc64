"""The commands and their options."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from .. import __version__, _arrays
from .._errors import GradsmithError
from .audit import audit
from .display import Watch, show_results
from .limits import default_jobs, default_memory, size_of
from .results import Journal, exit_status
from .run import Options, Run

INTERRUPTED = 130  # as shells say it of Ctrl-C


class Size(click.ParamType):
    """An amount of memory."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        size = value if isinstance(value, int) else size_of(value)
        if size is None:
            self.fail(f"{value!r} is no size, such as 4GB or 500MB", param, ctx)
        return size


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gradsmith")
def gradsmith() -> None:
    """Gradsmith: custom gradients in Python."""


gradsmith.add_command(audit)


@gradsmith.command()
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@click.option(
    "--framework",
    type=click.Choice([*_arrays.NAMES, "all"]),
    help="Where operations of ours are run; those of another framework are left out.",
)
@click.option("-k", "--select", multiple=True, help="Only names that contain this.")
@click.option("--quick", is_flag=True, help="Leave out compilers, vmap and survival.")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option(
    "--jobs",
    type=click.IntRange(1),
    metavar="N",
    help="Worker processes.  [default: one for each processor, at most 4]",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="For each operation.",
)
@click.option(
    "--memory-limit",
    type=Size(),
    help="For each worker, such as 4GB.  [default: its part of 3/4 of the memory]",
)
@click.option(
    "--json",
    "json_file",
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="All results as JSON, in place of the table unless a file is given.",
)
@click.option(
    "--resume",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep results here as they come; skip what is done and unchanged.",
)
@click.option(
    "--allow-inconclusive", is_flag=True, help="They count as right for the status."
)
def check(
    json_file: str | None, resume: Path | None, allow_inconclusive: bool, **given: Any
) -> None:
    """Check the gradients of all operations in files, folders and modules.

    A TARGET is a path (ops.py, src/), a module (package.ops), or one operation
    (ops.py:name, package.ops:name).

    Exit status: 0 all right, 1 something is wrong, 2 something could not be judged.
    """
    _require_json_file(json_file)
    start = time.perf_counter()
    try:
        run = Run(_options(**given), Journal(resume))
    except GradsmithError as error:
        raise click.UsageError(str(error)) from None
    is_whole = _followed(run)
    seconds = time.perf_counter() - start
    status = exit_status(run.results, allow_inconclusive=allow_inconclusive)
    status = status if is_whole else INTERRUPTED
    if json_file is not None:
        _write_json(json_file, run, seconds, status)
    if json_file != "-":
        show_results(run.results, seconds, Console())
    if not is_whole:
        click.echo(_stopped(resume), err=True)
    sys.exit(status)


def _options(
    quick: bool, jobs: int | None, memory_limit: int | None, **given: Any
) -> Options:
    jobs = jobs or default_jobs()
    memory = memory_limit or default_memory(jobs)
    return Options(thorough=not quick, jobs=jobs, memory_limit=memory, **given)


def _followed(run: Run) -> bool:
    """Show the run while it goes on; False if it was interrupted."""
    try:
        with Watch(Console(stderr=True)) as watch:
            for event in run.events():
                watch.show(event)
    except KeyboardInterrupt:
        return False
    return True


def _stopped(resume: Path | None) -> str:
    if resume is None:
        return "stopped; with --resume FILE a run can be continued"
    return f"stopped; continue with --resume {resume}"


def _require_json_file(file: str | None) -> None:
    if file and file != "-" and (Path(file).is_dir() or Path(file).suffix == ".py"):
        raise click.UsageError(
            f"--json would write to {file}: put the targets first, or say --json=-"
        )


def _write_json(file: str, run: Run, seconds: float, status: int) -> None:
    document = {
        "exit_status": status,
        "seed": run.options.seed,
        "seconds": round(seconds, 3),
        "results": [result.as_dict() for result in run.results],
    }
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if file == "-":
        click.echo(text, nl=False)
    else:
        Path(file).write_text(text, encoding="utf-8")
