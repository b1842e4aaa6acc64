"""What came of each operation: kept as JSON lines, so that a run can be resumed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from ..report.result import plain
from ..tools.check.model import Verdict


class Status(StrEnum):
    """What is said of an operation: a verdict, or why there is none."""

    RIGHT = Verdict.RIGHT.value
    WRONG = Verdict.WRONG.value
    INCONCLUSIVE = Verdict.INCONCLUSIVE.value
    FAILED = "could not run"

    @property
    def symbol(self) -> str:
        return "!" if self is Status.FAILED else Verdict(self.value).symbol


@dataclass(frozen=True)
class Result:
    """What came of one operation, or of a file that could not be imported.

    `message` says in a line why it could not run; `details` is the user's traceback,
    `output` what their code printed, `text` the report in words.
    """

    file: str
    name: str
    framework: str
    status: Status
    message: str = ""
    details: str = ""
    output: str = ""
    text: str = ""
    report: dict[str, Any] | None = None
    more: dict[str, Any] | None = None  # what a page shows beside the check
    seconds: float = 0.0
    key: str = ""  # changes if the file or an option does

    @property
    def label(self) -> str:
        return f"{self.file}:{self.name}" if self.name else self.file

    def as_dict(self) -> dict[str, Any]:
        return plain(asdict(self))


def exit_status(results: Iterable[Result], *, allow_inconclusive: bool) -> int:
    """0 if all are right, 1 if any is wrong, else 2 if any could not be judged."""
    found = {result.status for result in results}
    if Status.WRONG in found:
        return 1
    unclear = {Status.FAILED} if allow_inconclusive else {
        Status.FAILED, Status.INCONCLUSIVE
    }  # fmt: skip
    return 2 if not found or found & unclear else 0


class Journal:
    """A file of JSON lines that results are added to as they come."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.is_cut = False  # its last line is not complete
        self.results: dict[tuple[str, str, str], Result] = {}
        self.names: dict[tuple[str, str], list[list[str]]] = {}
        if path is not None and path.exists():
            self._read(path)

    def _read(self, path: Path) -> None:
        text = path.read_text(encoding="utf-8")
        self.is_cut = bool(text) and not text.endswith("\n")
        for line in text.splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue  # cut off when the run was ended
            if "operations" in row:
                self.names[row["file"], row["key"]] = row["operations"]
            else:
                row["status"] = Status(row["status"])
                self.results[row["file"], row["name"], row["key"]] = Result(**row)

    def done(self, file: str, name: str, key: str) -> Result | None:
        """The verdict of an earlier run. What could not run is tried again."""
        found = self.results.get((file, name, key))
        return found if found and found.status is not Status.FAILED else None

    def found(self, file: str, key: str, operations: list[list[str]]) -> None:
        self._write({"file": file, "key": key, "operations": operations})

    def add(self, result: Result) -> None:
        self._write(result.as_dict())

    def _write(self, row: dict[str, Any]) -> None:
        if self.path is None:
            return
        with self.path.open("a", encoding="utf-8") as file:
            start, self.is_cut = "\n" if self.is_cut else "", False
            file.write(start + json.dumps(row, ensure_ascii=False) + "\n")
