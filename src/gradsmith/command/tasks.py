"""What a worker process is asked, and how it answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ..core.arrays import FRAMEWORKS, title_of
from ..core.errors import GradientContractError, GradsmithError
from ..operations.examples import examples_of
from ..operations.info import of_operation
from ..report.result import BAD, OPEN, Document
from ..report.terminal import clean
from ..tools._inputs import framework_of_native
from ..tools.check import check
from ..tools.check.inputs import inputs_for
from ..tools.check.model import CheckReport
from ..tools.workers import Answer, Partial
from ..tools.workers.worker import Tell
from .discovery import operations_in
from .guess import Guess, NoGuessError, guess
from .loading import load, named, own_traceback
from .results import Status, TaskOutcome
from .sources import Source
from .traces import places_in


@dataclass(frozen=True)
class Task:
    """Find the operations of a file; or check one of them, if there is a name."""

    source: Source
    name: str = ""
    framework: str = ""  # as the arrays are, if none is asked for
    seed: int = 0
    thorough: bool = True
    closely: bool = False  # with what a page shows beside the check

    @property
    def doing(self) -> str:
        label = self.source.label
        return f"{label}:{self.name}" if self.name else label

    def failed(self, message: str, **more: Any) -> TaskOutcome:
        known = self.framework in FRAMEWORKS
        where = title_of(self.framework) if known else ""
        label = self.source.label
        return TaskOutcome(label, self.name, where, Status.FAILED, message, **more)


@dataclass(frozen=True)
class Listing:
    """The operations of a file, each with the framework that it belongs to, or ""."""

    operations: list[list[str]]

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> Listing:
        """From what a worker sent or a journal kept; ValueError if it is none."""
        pairs = row["operations"]
        if any(type(word) is not str for name, framework in pairs
               for word in (name, framework)):  # fmt: skip
            raise ValueError("a listing has names and frameworks")
        return cls([[clean(name), framework] for name, framework in pairs])


def near(task: Task) -> tuple[str, str]:
    """The root and the file of a task, for the workers.

    A worker is used again for files of the same root: importing a framework for each
    operation may take 3 s. Another root gets another worker, since `import utils`
    means another file there.
    """
    return task.source.root, task.source.file


def outcome(answer: Answer) -> Listing | TaskOutcome:
    """What came of a task, also if its worker is lost."""
    task: Task = answer.item
    if answer.error is not None:
        raise answer.error
    if not answer.lost:
        result = answer.result
        if isinstance(result, Listing):
            return result
    elif answer.partial is not None:
        lost = f"{answer.phase} {answer.lost}".strip()
        partial = answer.partial
        words = f"Not all of it could be computed: {lost}"
        result = replace(
            partial,
            more={**(partial.more or {}), "lost": lost},
            said=(*partial.said, Document(words, tone=OPEN)),
        )
    else:
        importing = answer.phase in ("", "imported")
        words = ", while the file was imported" if importing else ""
        details = places_in(answer.trace, task.source.root)
        result = task.failed(answer.lost + words, details=details)
    return replace(result, output=answer.output, seconds=answer.seconds)


def perform(task: Task, tell: Tell) -> Listing | TaskOutcome:
    """Do what a task asks for, and say what is going on."""
    tell("imported")
    try:
        module = load(task.source)
    except BaseException as error:  # SystemExit too
        return _raised(task, "could not be imported: ", error)
    try:
        if not task.name:
            return Listing(_listed(module, task.source.name))
        tell("checked")
        checked = _checked(task, module)
        return _closely(task, module, checked, tell) if task.closely else checked
    except NoGuessError as error:
        details = own_traceback(error.first, task.source.root)
        return task.failed(str(error), details=details)
    except GradientContractError as error:
        said = (Document(str(error), tone=BAD),)
        return replace(task.failed(""), status=Status.WRONG, said=said)
    except GradsmithError as error:
        message, _, details = str(error).partition("\n")
        return task.failed(message, details=details)
    except BaseException as error:
        return _raised(task, "raised ", error)


def _raised(task: Task, what: str, error: BaseException) -> TaskOutcome:
    words = str(error).partition("\n")[0]
    message = f"{what}{type(error).__name__}: {words}".rstrip(": ")
    return task.failed(message, details=own_traceback(error, task.source.root))


def _listed(module: Any, name: str | None) -> list[list[str]]:
    found = operations_in(module)
    if name is not None:
        try:
            found = {name: named(module, name)}
        except AttributeError:
            there = ", ".join(found) or "none"
            raise GradsmithError(
                f"there is no {name!r}; the operations here: {there}"
            ) from None
    return [[name, _framework(op)] for name, op in found.items()]


def _framework(op: Any) -> str:
    return "" if of_operation(op) else framework_of_native(op) or ""


def _checked(task: Task, module: Any) -> TaskOutcome:
    op = named(module, task.name)
    options: Any = {
        "framework": task.framework or None,
        "seed": task.seed,
        "thorough": task.thorough,
    }
    if examples_of(op):
        return _result(task, check(op, **options))
    guessed = _guessed(task, module)
    report = check(op, *guessed.args, **options)
    note = f"without an example; inputs were guessed: {guessed.words}"
    return _result(task, replace(report, notes=(*report.notes, note)))


def _guessed(task: Task, module: Any) -> Guess:
    owner, _, _ = task.name.rpartition(".")
    return guess(
        named(module, task.name),
        task.framework or None,
        task.seed,
        named(module, owner) if owner else None,
    )


def _closely(task: Task, module: Any, checked: TaskOutcome, tell: Tell) -> TaskOutcome:
    """A result with more to it, on the inputs of the check (its first example)."""
    from .details.parts import details

    op = named(module, task.name)
    args = () if examples_of(op) else _guessed(task, module).args
    todo = details(
        op,
        inputs_for(op, args, {}, seed=task.seed)[0],
        framework=task.framework or None,
        seed=task.seed,
        thorough=task.thorough,
    )
    for name, detail in todo.items():
        tell(Partial(checked))
        tell(name)
        checked = checked.having(name, detail())
    return checked


def _result(task: Task, report: CheckReport) -> TaskOutcome:
    return TaskOutcome(
        task.source.label,
        task.name,
        report.framework,
        Status(report.verdict.value),
        report=report.as_dict(),
        said=(report.document(),),
    )
