"""Options that commands share: what is run, and with which limits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ..core import arrays
from ..core.errors import GradsmithError
from ..tools.workers import Journal, default_jobs, default_memory
from .outputs import require_writable, write
from .run import Options, Run

_UNITS = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}


def size_of(words: str) -> int | None:
    """Bytes, from words; None if they are no size.

    >>> size_of("4GB"), size_of("500 MB"), size_of("lots")
    (4000000000, 500000000, None)
    """
    match = re.fullmatch(r"\s*([\d.]+)\s*([kmgt])i?b?\s*", words.lower())
    return int(float(match[1]) * _UNITS[match[2]]) if match else None


class Size(click.ParamType):
    """An amount of memory."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        size = value if isinstance(value, int) else size_of(value)
        if size is None:
            self.fail(f"{value!r} is not a size such as 4GB or 500MB", param, ctx)
        return size


_RUN = (
    click.argument("targets", nargs=-1, required=True, metavar="TARGET..."),
    click.option(
        "--framework",
        type=click.Choice([*arrays.FRAMEWORKS, "all"]),
        help="Framework to run Gradsmith operations in; those of others are skipped.",
    ),
    click.option("-k", "--select", multiple=True, help="Only names that contain this."),
    click.option(
        "--surrogate",
        multiple=True,
        metavar="NAME",
        help="An operation whose rule is not the derivative, on purpose.",
    ),
    click.option("--quick", is_flag=True, help="Skip compilers, vmap and survival."),
    click.option("--seed", type=int, default=0, show_default=True),
    click.option(
        "--jobs",
        type=click.IntRange(1),
        metavar="N",
        help="Worker processes.  [default: one for each processor, at most 4]",
    ),
    click.option(
        "--time-limit",
        type=click.FloatRange(0, min_open=True),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="For each operation.",
    ),
    click.option(
        "--memory-limit",
        type=Size(),
        help="For each worker, such as 4GB.  [default: its share of 3/4 of the memory]",
    ),
    click.option(
        "--resume",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Append results to this file; skip what is done and unchanged.",
    ),
    click.option(
        "--allow-inconclusive",
        is_flag=True,
        help="Exit with 0 also if it could not be told of some.",
    ),
    click.option(
        "--strict",
        is_flag=True,
        help="Limits, and surrogates that are not declared, count as wrong.",
    ),
)


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The targets, and the options of a run."""
    for option in reversed(_RUN):
        command = option(command)
    return command


def run_of(resume: Path | None, *, closely: bool = False, **given: Any) -> Run:
    """The run that was asked for; what can't be run is wrong usage."""
    require_writable("--resume", resume)
    try:
        return Run(_options(closely=closely, **given), Journal(resume))
    except GradsmithError as error:
        raise click.UsageError(str(error)) from None


def _options(
    quick: bool, jobs: int | None, memory_limit: int | None, **given: Any
) -> Options:
    jobs = jobs or default_jobs()
    memory = memory_limit or default_memory(jobs)
    return Options(thorough=not quick, jobs=jobs, memory_limit=memory, **given)


json_option = click.option(
    "--json",
    "json_file",
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="All results as JSON, instead of the table unless a file is given.",
)


def write_json(file: str, document: dict[str, Any]) -> None:
    """Write a document to a file, or to the terminal (-)."""
    text = json.dumps(document, indent=2, ensure_ascii=False) + "\n"
    if file == "-":
        click.echo(text, nl=False)
    else:
        write(file, text)
