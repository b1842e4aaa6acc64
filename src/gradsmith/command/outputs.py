"""Files that a command writes: tried before the work, whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import click

from ..core.files import written_whole


def require_writable(option: str, file: str | Path | None) -> None:
    """Refuse a file that could not be written, or is a target that an option took."""
    if file is None or str(file) == "-":
        return
    path = Path(os.path.realpath(file))
    if path.is_dir() or path.suffix == ".py":
        hint = ", or use --json=-" if option == "--json" else ""
        raise click.UsageError(
            f"{option} would write to {file}: put the targets first{hint}"
        )
    if not path.parent.is_dir():
        raise click.UsageError(f"{option} {file}: there is no folder {path.parent}")
    if path.exists() and not os.access(path, os.W_OK):
        raise click.UsageError(f"{option} {file}: it may not be written to")
    if _is_replaced(path):
        try:
            with tempfile.TemporaryFile(dir=path.parent):
                pass
        except OSError as error:
            words = error.strerror or error
            raise click.UsageError(f"{option} {file}: {path.parent}: {words}") from None


def _is_replaced(path: Path) -> bool:
    """A device or a pipe is written to as it is."""
    return not path.exists() or path.is_file()


def write(file: str | Path, text: str) -> None:
    """Write a text file: under another name first, so that it is never half there."""
    path = Path(os.path.realpath(file))  # a link stays one
    data = text.encode("utf-8", "backslashreplace")
    if not _is_replaced(path):
        path.write_bytes(data)
        return
    with written_whole(path) as part:
        part.write(data)
