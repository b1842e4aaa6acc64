"""Tables in documents: they stand between two marks, which name their benchmark."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def marks(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def region(text: str, name: str) -> str | None:
    """What stands between the marks in a document; None if it has none."""
    begin, end = marks(name)
    if begin not in text or end not in text:
        return None
    return text.partition(begin)[2].partition(end)[0].strip()


def update(paths: Iterable[str], content: str, name: str) -> None:
    """Put the tables between the marks of documents."""
    begin, end = marks(name)
    for path in map(Path, paths):
        text = path.read_text()
        if region(text, name) is None:
            raise SystemExit(f"{path} has no lines {begin} and {end}")
        head, tail = text.partition(begin)[0], text.partition(end)[2]
        path.write_text(f"{head}{begin}\n{content}\n{end}{tail}")
