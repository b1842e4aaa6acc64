"""A run as a page: whether one can be written, and where it went."""

from __future__ import annotations

from pathlib import Path

import click

from ..core.errors import GradsmithError
from .outputs import require_writable, write
from .run import Run


def ready_for(option: str, file: str | None) -> None:
    """Say before a long run that its page could not be written."""
    if file is None:
        return
    require_writable(option, file)
    from ..report.page.render import require_jinja2

    try:
        require_jinja2()
    except GradsmithError as error:
        raise click.UsageError(str(error)) from None


def write_page(file: str, run: Run, seconds: float) -> None:
    """Write the page, and say where it is."""
    from ..report.page import page_of, render

    page = page_of(
        run.results,
        title=f"Gradients of {', '.join(run.options.targets)}",
        seed=run.options.seed,
        took=f"{seconds:.1f} s",
    )
    write(file, render(page))
    say_where(Path(file))


def say_where(page: Path) -> None:
    click.echo(f"the page is {page} ({page.stat().st_size / 1000:,.0f} kB)")
