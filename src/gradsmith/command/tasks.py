"""What a worker process is asked, and how it answers."""

from __future__ import annotations

import time
from collections.abc import Container
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..core.arrays import FRAMEWORKS, NUMPY, title_of
from ..core.errors import GradientContractError, GradsmithError
from ..operations.examples import examples_of
from ..operations.info import of_operation
from ..report.result import BAD, OPEN, Document, Item
from ..report.terminal import clean, text
from ..tools._inputs import framework_of_native
from ..tools.check import check, partial_reports
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

# Of a framework; what compiles needs threads in some of them only once it is used.
_PARTS = ("arrays", "calculus", "call", "compiled", "natives", "transformations")


@dataclass(frozen=True)
class Task:
    """Find the operations of a file; or check one of them, if there is a name."""

    source: Source
    name: str = ""
    framework: str = ""  # as the arrays are, if none is asked for
    seed: int = 0
    thorough: bool = True
    closely: bool = False  # with what a page shows beside the check
    surrogate: str | None = None  # why it is one, where it can't say so itself
    wrt: tuple[str | int, ...] | None = None  # arguments
    data: tuple[str | int, ...] | None = None

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


def preload(task: Task) -> tuple[str, ...]:
    """The modules that a task is likely to need, and that take long to import.

    A thorough check of an operation of ours runs in every framework.
    """
    imports = task.source.imports
    if not task.name and imports in ((), ("gradsmith",)):
        return modules_for(())  # the operations are listed at once
    everywhere = tuple(FRAMEWORKS) if task.thorough and "gradsmith" in imports else ()
    return modules_for((task.framework, *imports, *everywhere))


def modules_for(frameworks: Container[str]) -> tuple[str, ...]:
    """The modules of some frameworks and of NumPy, as far as they are installed."""
    return "numpy.ma", *(  # which np.median imports
        module
        for each in FRAMEWORKS.values()
        if (each.name == NUMPY or each.name in frameworks) and each.is_installed
        for module in (each.module, *(f"{each.package}.{part}" for part in _PARTS))
    )


def outcome(answer: Answer) -> Listing | TaskOutcome:
    """What came of a task, also if its worker is lost."""
    task: Task = answer.item
    if answer.error is not None:
        words, lines = str(answer.error), str(answer.error).strip().splitlines()
        result = task.failed(f"internal error: {lines[-1]}", details=words)
    elif answer.lost:
        result = _lost(task, answer)
    else:
        try:
            result = _read(answer.result)
        except (ValueError, TypeError, LookupError, AttributeError):
            result = task.failed("could not tell: the worker sent what is no result")
    if isinstance(result, Listing):
        return result
    return replace(result, output=clean(answer.output), seconds=answer.seconds)


def _read(sent: dict[str, Any]) -> Listing | TaskOutcome:
    if "operations" in sent:
        return Listing.from_dict(sent)
    result = TaskOutcome.from_row(sent)
    text(result.document())  # which can be shown
    return result


def _lost(task: Task, answer: Answer) -> TaskOutcome:
    """What is known of a task whose worker is lost."""
    with suppress(ValueError, TypeError, LookupError, AttributeError):
        if answer.partial is not None:
            return _partly(TaskOutcome.from_row(answer.partial), task, answer)
    importing = answer.phase in ("", "imported")
    words = ", while the file was imported" if importing else ""
    details = places_in(answer.trace, task.source.root)
    return task.failed(clean(answer.lost) + words, details=clean(details))


def _partly(partial: TaskOutcome, task: Task, answer: Answer) -> TaskOutcome:
    """What was found until then; no verdict but that it is wrong, if it is."""
    if answer.phase != "checked":  # which is complete, but not what a page shows of it
        lost = f"{answer.phase} {answer.lost}"
        words = Document(f"Not all of it could be computed: {lost}", tone=OPEN)
        more = {**(partial.more or {}), "lost": lost}
        return replace(partial, more=more, said=(*partial.said, words))
    (found,) = partial.said
    if partial.status is Status.WRONG:
        lost = f"{answer.lost}, after this was found"
        blocks = (*found.blocks, Item("-", f"the check {lost}"))
        return replace(partial, message=lost, said=(replace(found, blocks=blocks),))
    report = partial.report or {}
    done = ", ".join(dict.fromkeys(each["what"] for each in report["checks"]))
    message = f"{answer.lost}; until then: {done}, without a mistake"
    return replace(
        partial,
        status=Status.FAILED,
        message=message,
        details=clean(places_in(answer.trace, task.source.root)),
        said=(replace(found, headline=message, remark=message, repair=""),),
    )


def perform(task: Task, tell: Tell) -> dict[str, Any]:
    """Do what a task asks for, and say what is going on; plain data."""
    found = _performed(task, tell)
    return found.as_row() if isinstance(found, TaskOutcome) else asdict(found)


def _performed(task: Task, tell: Tell) -> Listing | TaskOutcome:
    tell("imported")
    try:
        module = load(task.source)
    except BaseException as error:  # SystemExit too
        return _raised(task, "could not be imported: ", error)
    try:
        if not task.name:
            return Listing(listed(module, task.source.name))
        tell("checked")
        checked = _checked(task, module, tell)
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


def listed(module: Any, name: str | None) -> list[list[str]]:
    """The operations of a module, or the one that is asked for."""
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


def _checked(task: Task, module: Any, tell: Tell) -> TaskOutcome:
    seen, again = 0, 0.0

    def tell_partial(report: CheckReport) -> None:
        """Whatever is found; of what is right as often as takes 5 % of the time."""
        nonlocal seen, again
        start = time.perf_counter()
        if len(report.findings) > seen or start > again:
            tell(Partial(_result(task, report).as_row()))
            seen, now = len(report.findings), time.perf_counter()
            again = now + 20 * (now - start)

    op = named(module, task.name)
    checked = check.options(
        framework=task.framework or None,
        seed=task.seed,
        thorough=task.thorough,
        surrogate=task.surrogate,
        wrt=task.wrt,
        data=task.data,
    )
    with partial_reports(tell_partial):
        if examples_of(op):
            return _result(task, checked(op))
        guessed = _guessed(task, module)
        report = checked(op, *guessed.args)
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
        tell(Partial(checked.as_row()))
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
