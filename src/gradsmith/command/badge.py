"""`gradsmith badge`: from the JSON of a run to an SVG."""

from __future__ import annotations

import json
from pathlib import Path

import click

from .formats.badge import of_summary
from .outputs import require_writable, write


@click.command(short_help="Draw a badge from the JSON of a check or an audit.")
@click.argument("results", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "-o",
    "--output",
    default="badge.svg",
    show_default=True,
    metavar="FILE",
    help="The file to write.",
)
def badge(results: Path, output: str) -> None:
    """Draw a badge from RESULTS, the JSON of `gradsmith check` or `gradsmith audit`.

    `--format badge=FILE` of these commands draws the same badge at once.
    """
    require_writable("-o", output)
    try:
        image = of_summary(json.loads(results.read_text(encoding="utf-8"))["summary"])
    except (ValueError, LookupError, TypeError, AttributeError):
        raise click.UsageError(
            f"{results} is not the JSON of `gradsmith check` or `gradsmith audit`"
        ) from None
    write(output, image)
    click.echo(f"the badge is {output}")
