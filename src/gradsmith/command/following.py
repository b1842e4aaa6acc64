"""A run that is shown while it goes on, and may be interrupted."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from .check_display import CheckBar
from .run import Run

INTERRUPTED = 130  # as shells say it of Ctrl-C


def followed(run: Run) -> bool:
    """Show the run while it goes on; False if it was interrupted."""
    try:
        with CheckBar(Console(stderr=True)) as bar:
            for event in run.events():
                bar.show(event)
    except KeyboardInterrupt:
        return False
    return True


def stopped(resume: Path | None) -> str:
    if resume is None:
        return "stopped; with --resume FILE a run can be continued"
    return f"stopped; continue with --resume {resume}"
