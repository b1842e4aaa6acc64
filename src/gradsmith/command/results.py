"""What came of each operation, and of all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from itertools import groupby
from types import NoneType
from typing import Any

from ..report.result import FAILED, Block, Document, Item, Line, More, Result, plain
from ..report.terminal import clean, text
from ..tools.check.model import Verdict
from .status import Exit


class Status(StrEnum):
    """What is said of an operation: a verdict, or why there is none."""

    RIGHT = Verdict.RIGHT.value
    DECLARED = Verdict.DECLARED.value
    LIMITED = Verdict.LIMITED.value
    SURROGATE = Verdict.SURROGATE.value
    UNKNOWN = Verdict.UNKNOWN.value
    WRONG = Verdict.WRONG.value
    FAILED = "could not run"

    @property
    def symbol(self) -> str:
        return "!" if self is Status.FAILED else Verdict(self.value).symbol

    @property
    def tone(self) -> str:
        return FAILED if self is Status.FAILED else Verdict(self.value).tone


@dataclass(frozen=True)
class TaskOutcome(Result):
    """What came of one operation, or of a file that could not be imported.

    `status` is the verdict of all tools that ran: what is right for the check is right
    with limits if another tool has something to say. `message` says in a line why it
    could not run; `details` is the user's traceback, `output` what their code printed.
    `report` is the check as data, `more` what a page shows beside it, and `said` what
    both of them say.
    """

    file: str
    name: str
    framework: str
    status: Status
    message: str = ""
    details: str = ""
    output: str = ""
    report: dict[str, Any] | None = None
    more: dict[str, Any] | None = None
    said: tuple[Document, ...] = ()
    seconds: float = 0.0
    key: str = ""  # changes if the file or an option does

    @property
    def label(self) -> str:
        return f"{self.file}:{self.name}" if self.name else self.file

    @property
    def ok(self) -> bool:
        """Whether there is a verdict, and it is not wrong."""
        return self.status is not Status.FAILED and Verdict(self.status.value).passes()

    @property
    def limits(self) -> list[str]:
        """What tools beside the check say of a gradient that is right."""
        if self.status in (Status.WRONG, Status.SURROGATE, Status.FAILED):
            return []
        return [f"{d.title.lower()}: {d.limit}" for d in self.said[1:] if d.limit]

    def document(self) -> Document:
        said = self.said[0] if self.said else Document(self.message)
        blocks: list[Block] = [Item("limit:", each) for each in self.limits]
        blocks += said.blocks
        blocks += [Line(self.details, 0)] if self.details else []
        blocks += _printed(self) if self.output else []
        remark = said.remark or said.headline.partition("\n")[0]
        if self.limits:
            own = [remark] if said.verdict != Status.RIGHT else []
            remark = "; ".join([*own, *self.limits])
        return replace(
            said,
            headline=self._headline(said),
            blocks=tuple(blocks),
            title="Gradient check",
            subject=self.label,
            framework=said.framework or self.framework,
            verdict=self.status.value,
            tone=self.status.tone,
            symbol=self.status.symbol,
            remark=remark,
        )

    def _headline(self, said: Document) -> str:
        """That of the check, with the verdict of all tools."""
        if self.status is not Status.LIMITED:
            return said.headline
        words = Verdict.LIMITED.sentence
        if words in said.headline:
            return said.headline
        return said.headline.replace(Verdict.RIGHT.sentence, words, 1)

    def documents(self) -> tuple[Document, ...]:
        return (self.document(), *self.said[1:])

    def having(self, name: str, result: Result) -> TaskOutcome:
        """With one more thing for the page."""
        more = {**(self.more or {}), name: result.as_dict()}
        document = result.document()
        is_limited = document.limit and self.status is Status.RIGHT
        return replace(
            self,
            status=Status.LIMITED if is_limited else self.status,
            more=more,
            said=(*self.said, document),
        )

    def as_dict(self) -> dict[str, Any]:
        """All of it in dicts, lists, strings and numbers; NaN and inf as strings."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        words = text(self.document()) if self.said else ""
        return plain({**found, "limits": self.limits, "text": words, "said": None})

    def as_row(self) -> dict[str, Any]:
        """For a journal; `from_row` is the way back."""
        return {**self.as_dict(), "said": [each.as_dict() for each in self.said]}

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> TaskOutcome:
        """From what a worker sent or a journal kept; an error if it is no result.

        Words are those of a user's code, and go to terminals.
        """
        derived = ("text", "limits")
        kept = {k: value for k, value in cleaned(row).items() if k not in derived}
        said = tuple(map(Document.from_dict, kept["said"]))
        result = cls(**{**kept, "status": Status(row["status"]), "said": said})
        for each in fields(cls):
            if not isinstance(getattr(result, each.name), _TYPES[str(each.type)]):
                raise ValueError(f"{each.name} of a result is no {each.type}")
        return result


_TYPES: dict[str, Any] = {
    "str": str,
    "Status": Status,
    "float": (int, float),
    "dict[str, Any] | None": (dict, NoneType),
    "tuple[Document, ...]": tuple,
}


def cleaned(tree: Any) -> Any:
    """Plain data in which no control character is left, but tabs and newlines."""
    if isinstance(tree, dict):
        return {clean(key): cleaned(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [cleaned(value) for value in tree]
    return clean(tree) if isinstance(tree, str) else tree


def _printed(outcome: TaskOutcome) -> list[Block]:
    """What the user's code printed; it is called often, and may repeat itself."""
    lines = ["It printed:"]
    for line, same in groupby(outcome.output.splitlines()):
        times = len(list(same))
        lines.append(f"  | {line}" + (f"  ({times} times)" if times > 1 else ""))
    printed = Line("\n".join(lines), 0)
    if outcome.status in (Status.FAILED, Status.UNKNOWN):
        return [printed]
    return [More("What it printed", (printed,))]


def exit_status(
    results: Iterable[TaskOutcome],
    *,
    allow_inconclusive: bool,
    strict: bool = False,
    allow_empty: bool = False,
) -> Exit:
    """Whether any is wrong, else whether any could not be judged."""
    found = {result.status for result in results}
    if not found and allow_empty:
        return Exit.FINE
    strictly = {Status.LIMITED, Status.SURROGATE} if strict else set()
    if found & {Status.WRONG, *strictly}:
        return Exit.WRONG
    unclear = {Status.FAILED} if allow_inconclusive else {
        Status.FAILED, Status.UNKNOWN
    }  # fmt: skip
    return Exit.UNJUDGED if not found or found & unclear else Exit.FINE
