"""What a command writes: `--format`, `--json`, and the table."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from .display import Terminal
from .entries import Finished
from .formats import FORMATS
from .outputs import require_writable, write
from .status import Exit, Outputs

TEXT = "text"
_SUMMARY = "GITHUB_STEP_SUMMARY"  # which commands of a step write to in turn
WIDTH = 160  # of a table in a file

Output = tuple[str, str]  # a format, and a file or "-"


class Format(click.ParamType):
    """A format, and the file that it goes to."""

    name = "format"

    def convert(self, value: Any, param: Any, ctx: Any) -> Output:
        if isinstance(value, tuple):
            return value
        name, _, file = value.partition("=")
        if name not in (TEXT, *FORMATS):
            self.fail(f"{name!r} is none of {TEXT}, {', '.join(FORMATS)}", param, ctx)
        return name, file or "-"


json_option = click.option(
    "--json",
    "json_file",
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="All results as JSON, instead of the table unless a file is given.",
)
format_option = click.option(
    "--format",
    "formats",
    multiple=True,
    type=Format(),
    metavar="FORMAT[=FILE]",
    help=f"{TEXT}, {', '.join(FORMATS)}: to a file, or instead of the table; may be "
    "repeated.",
)


def outputs_of(formats: Sequence[Output], json_file: str | None) -> list[Output]:
    """What is to be written where; refused before the work if that can't be."""
    asked = [*formats]
    if json_file is not None:
        asked.append(("json", json_file))
        require_writable("--json", json_file)
    for name, file in formats:
        require_writable(f"--format {name}", file)
    shown = [name for name, file in asked if file == "-"]
    if not shown:
        asked.insert(0, (TEXT, "-"))
    if len(shown) > 1 and not {*shown} <= {TEXT, "github"}:
        raise click.UsageError(
            f"{' and '.join(shown)} would both go to standard output: give one of them "
            f"a file, such as --format {shown[-1]}=FILE"
        )
    return asked


def write_all(
    asked: Sequence[Output], run: Finished, outputs: Outputs, found: Exit,
    *, is_whole: bool,
) -> None:  # fmt: skip
    """Write each output; what can't be written changes the status of the next."""
    for name, file in asked:
        status = outputs.reached(found, is_whole=is_whole)
        data = {"exit_status": int(status), **run.data}
        outputs.write(file, partial(_write, name, file, replace(run, data=data)))


def _write(name: str, file: str, run: Finished) -> None:
    if name == TEXT and file == "-":
        run.show(Terminal())
        return
    text = _table(run) if name == TEXT else FORMATS[name](run)
    if file == "-":
        click.echo(text, nl=False)
    elif file == os.environ.get(_SUMMARY):
        with Path(file).open("a", encoding="utf-8") as summary:
            summary.write(text)
    else:
        write(file, text)


def _table(run: Finished) -> str:
    file = StringIO()
    run.show(Console(width=WIDTH, file=file))
    return file.getvalue()
