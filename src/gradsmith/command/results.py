"""What came of each operation, and of all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
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

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> Result:
        return cls(**{**row, "status": Status(row["status"])})


def exit_status(results: Iterable[Result], *, allow_inconclusive: bool) -> int:
    """0 if all are right, 1 if any is wrong, else 2 if any could not be judged."""
    found = {result.status for result in results}
    if Status.WRONG in found:
        return 1
    unclear = {Status.FAILED} if allow_inconclusive else {
        Status.FAILED, Status.INCONCLUSIVE
    }  # fmt: skip
    return 2 if not found or found & unclear else 0
