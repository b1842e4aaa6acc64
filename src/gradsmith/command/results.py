"""What came of each operation, and of all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from types import NoneType
from typing import Any

from ..report.result import plain
from ..report.terminal import clean
from ..tools.check.model import Verdict
from .status import Exit


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
        """From what a worker sent or a journal kept; ValueError if it is no result.

        Words are those of a user's code, and go to terminals.
        """
        result = cls(**{**cleaned(row), "status": Status(row["status"])})
        for each in fields(cls):
            if not isinstance(getattr(result, each.name), _TYPES[str(each.type)]):
                raise ValueError(f"{each.name} of a result is no {each.type}")
        return result


_TYPES: dict[str, Any] = {
    "str": str,
    "Status": Status,
    "float": (int, float),
    "dict[str, Any] | None": (dict, NoneType),
}


def cleaned(tree: Any) -> Any:
    """Plain data in which no control character is left, but tabs and newlines."""
    if isinstance(tree, dict):
        return {clean(key): cleaned(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [cleaned(value) for value in tree]
    return clean(tree) if isinstance(tree, str) else tree


def exit_status(results: Iterable[Result], *, allow_inconclusive: bool) -> Exit:
    """Whether any is wrong, else whether any could not be judged."""
    found = {result.status for result in results}
    if Status.WRONG in found:
        return Exit.WRONG
    unclear = {Status.FAILED} if allow_inconclusive else {
        Status.FAILED, Status.INCONCLUSIVE
    }  # fmt: skip
    return Exit.UNJUDGED if not found or found & unclear else Exit.FINE
