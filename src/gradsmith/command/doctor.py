"""`gradsmith doctor`: what is installed, what works, and what to install."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click
from rich.text import Text

from .display import Terminal, show_table
from .installation import (
    INSTALLED,
    MISSING,
    OLD,
    Row,
    advice,
    as_dict,
    cells,
    examined,
    system,
    verdict,
    works,
)
from .probes import SECONDS, SILENT, WORKS
from .status import Exit, with_statuses

_STYLES = {WORKS: "green", MISSING: "dim", OLD: "yellow", SILENT: "yellow"}
_STYLES[INSTALLED] = ""


@click.command(short_help="Show what is installed, what works, what to install.")
@click.option("--deep", is_flag=True, help="Try every framework and package.")
@click.option("--json", "as_json", is_flag=True, help="All of it as JSON.")
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    default=SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="Time for each of them.",
)
@with_statuses("the embedded engine works", "it does not", (Exit.FINE, Exit.WRONG))
def doctor(deep: bool, as_json: bool, time_limit: float) -> None:
    """Print versions, what is too old or broken, and what to install.

    It runs the embedded engine and a kernel. With --deep it also computes a gradient in
    each framework and imports each package, in processes of their own, and reports
    those that crash or hang.
    """
    rows = examined(time_limit, deep=deep)
    if as_json:
        click.echo(json.dumps(as_dict(rows), indent=2, ensure_ascii=False))
    else:
        _show(rows)
    sys.exit(Exit.FINE if works(rows) else Exit.WRONG)


def _show(rows: Sequence[Row]) -> None:
    console = Terminal()
    console.print(system(), highlight=False, soft_wrap=True)
    console.print()
    table = []
    for row, (group, mark, name, version, said) in zip(rows, cells(rows), strict=True):
        style = _STYLES.get(row.state, "bold red")
        words = Text(said, style="dim" if row.state == MISSING else "")
        table.append((Text(group, style="bold"), Text(mark, style=style), Text(name),
                      Text(version), words))  # fmt: skip
    show_table(console, ("", "", "", "version", ""), table, folded=("",))
    for line in advice(rows):
        style = "" if line.startswith(" ") else "bold"
        console.print(Text(line, style=style), soft_wrap=True)
    console.print(
        Text(verdict(rows), style=f"bold {'green' if works(rows) else 'red'}")
    )
