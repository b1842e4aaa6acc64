"""Outcomes written as they come, one JSON line each, so that a run can go on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .outcome import Outcome

Key = tuple[Any, ...]


class Results:
    """The outcomes of earlier runs in a file, and a place for those to come.

    Without a path nothing is read or written. The file is for one state of the code:
    outcomes are taken as they are, whatever the checkers would say today.
    """

    def __init__(self, path: str | None) -> None:
        self.path = Path(path) if path else None
        self.earlier = {key_of(o): o for o in self._read()}
        self.file: Any = None

    def _read(self) -> Iterator[Outcome]:
        if self.path is None or not self.path.exists():
            return
        for line in self.path.read_text().splitlines():
            try:
                yield Outcome(**json.loads(line))
            except json.JSONDecodeError:
                continue  # the line at which a run was interrupted

    @contextmanager
    def open(self) -> Iterator[Results]:
        if self.path is None:
            yield self
            return
        with self.path.open("a+") as self.file:
            if self.file.tell() and not self.path.read_text().endswith("\n"):
                print(file=self.file)  # after the line that was interrupted
            yield self

    def write(self, outcome: Outcome) -> None:
        if self.file is not None:
            print(json.dumps(asdict(outcome)), file=self.file, flush=True)


def key_of(o: Outcome) -> Key:
    return (o.operation, o.kind, o.framework, o.checker, o.dtype, o.seed)
