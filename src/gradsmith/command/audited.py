"""What is audited: operations of ours, found as for `check`, and any named function.

Each is audited in a process of its own, as `check` does it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..core.errors import GradsmithError
from ..report.result import FAILED, Document, Line, Result, plain
from ..report.terminal import clean
from ..tools.audit.model import Audit
from ..tools.workers import Answer, Partial, Pool
from ..tools.workers.worker import Tell
from .config import settings_for
from .loading import load, named, own_traceback
from .results import cleaned
from .run import frameworks_for
from .sources import Source, sources_of
from .status import Exit
from .tasks import Listing, listed, modules_for
from .traces import places_in


@dataclass(frozen=True)
class AuditTask:
    """Find the operations of a file; or audit one function, if there is a name."""

    label: str  # as a user would write it
    place: tuple[int, ...]  # among the others
    module: str = ""  # which can be imported, if it is not a file
    source: Source | None = None
    name: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    dask: str | None = None

    @property
    def root(self) -> str:
        return str(Path.cwd()) if self.source is None else self.source.root


@dataclass(frozen=True)
class Audited(Result):
    """What came of one: a report, or why there is none."""

    label: str
    report: Any = None
    message: str = ""
    details: str = ""
    seconds: float = 0.0
    file: str = ""  # none of what is audited by its module
    name: str = ""
    refused: bool = False  # it is of a kind that can't be audited

    @property
    def ok(self) -> bool:
        """Whether it was audited, and is accurate."""
        return self.report is not None and self.report.ok

    def document(self) -> Document:
        if self.report is not None:
            return replace(self.report.document(), subject=self.label)
        return Document(
            self.message,
            (Line(self.details, 0),) if self.details else (),
            FAILED,
            title="Accuracy",
            subject=self.label,
            verdict="could not run",
            remark=self.message,
        )

    def beyond(self, limit: float) -> bool:
        """Whether the value or the gradient is further off than so many ULP."""
        if self.report is None:
            return False
        parts = (self.report.value, *self.report.gradients.values())
        return any(p.judged and (p.wrong or p.max_ulp > limit) for p in parts)

    @property
    def is_judged(self) -> bool:
        report = self.report
        return report is not None and bool(report.value.judged) and not report.is_open

    def as_dict(self) -> dict[str, Any]:
        report = None if self.report is None else self.report.as_dict()
        return plain(
            {
                "target": self.label,
                "message": self.message,
                "details": self.details,
                "seconds": round(self.seconds, 3),
                "report": report,
            }
        )

    @classmethod
    def from_dict(cls, label: str, sent: dict[str, Any]) -> Audited:
        """From what a worker sent; an error if it is no result."""
        sent = cleaned(sent)
        if "report" in sent:
            return cls(label, Audit.from_dict(sent["report"]))
        message, details = str(sent["message"]), str(sent["details"])
        refused = sent.get("refused") is True
        return cls(label, message=message, details=details, refused=refused)


def tasks_of(
    targets: Sequence[str], options: dict[str, Any], dask: str | None,
    skipped: list[str], **chosen: Any,
) -> list[AuditTask]:  # fmt: skip
    """What is to be done first for each target."""
    found: list[AuditTask] = []
    shared: Any = {"options": options, "dask": dask}
    for target in targets:
        where, colon, name = target.rpartition(":")
        is_path = Path(where).exists() or where.endswith(".py") or "/" in where
        if colon and len(where) > 1 and not is_path:
            place = (len(found),)
            found.append(AuditTask(target, place, where, name=name, **shared))
            continue
        for source in sources_of(target, skipped, **chosen):
            place = (len(found),)
            found.append(AuditTask(source.label, place, source=source, **shared))
    return found


def preload(task: AuditTask) -> tuple[str, ...]:
    imports = () if task.source is None else task.source.imports
    root = task.module.partition(".")[0]
    return modules_for((*imports, root, task.options.get("framework")))


def perform(task: AuditTask, tell: Tell) -> dict[str, Any]:
    """Do what a task asks for, in a worker; plain data."""
    tell("imported")
    try:
        if task.source is None:
            op = _of_module(task)
        else:
            module = load(task.source)
            if not task.name:
                return {"operations": listed(module, task.source.name)}
            op = named(module, task.name)
        try:
            return {"report": _audit(op, task, tell).as_dict()}
        except GradsmithError as error:
            return {**_refused(error), "refused": True}
    except GradsmithError as error:
        return _refused(error)
    except BaseException as error:  # SystemExit too
        words = str(error).partition("\n")[0]
        message = f"raised {type(error).__name__}: {words}".rstrip(": ")
        return {"message": message, "details": own_traceback(error, task.root)}


def _refused(error: GradsmithError) -> dict[str, Any]:
    message, _, details = str(error).partition("\n")
    return {"message": message, "details": details}


def _of_module(task: AuditTask) -> Any:
    """A function of a module that can be imported, as torch.nn.functional:gelu."""
    if task.root not in sys.path:
        sys.path.insert(0, task.root)
    try:
        return named(importlib.import_module(task.module), task.name)
    except (ImportError, AttributeError) as error:
        raise GradsmithError(f"there is no {task.label!r}: {error}") from None


def _audit(op: Any, task: AuditTask, tell: Tell) -> Audit:
    from ..tools.audit.api import audit

    def progress(done: int, total: int) -> None:
        tell(Partial([done, total]))
        tell("audited")  # the limit is for the time without progress

    tell("audited")
    with cluster(task.dask) as executor:
        return audit(op, executor=executor, progress=progress, **task.options)


@contextmanager
def cluster(address: str | None) -> Iterator[Any]:
    """The executor of a Dask cluster, or None."""
    if address is None:
        yield None
        return
    try:
        from distributed import Client
    except ImportError:
        raise GradsmithError(
            'Dask is not installed: pip install "gradsmith[cluster]"'
        ) from None
    try:
        client = Client(address, timeout=10)
    except (OSError, TimeoutError, ValueError) as error:
        raise GradsmithError(f"no cluster found at {address}: {error}") from None
    with client:
        yield client.get_executor()


@dataclass(frozen=True)
class Step:
    """What is being audited, and how many of its inputs are done."""

    label: str
    done: int = 0
    total: int | None = None


class Auditing:
    """All of a run: `results` are in the order of the targets."""

    def __init__(
        self,
        tasks: Sequence[AuditTask],
        select: Sequence[str],
        limit: float | None,
        frameworks: Sequence[str] = (),
        operations: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        self.tasks, self.select, self.limit = tasks, select, limit
        self.frameworks, self.operations = frameworks, operations or {}
        self._results: dict[tuple[int, ...], Audited] = {}
        self.found: list[tuple[str, str]] = []  # operations, and their modules
        self.is_all_read = True  # or a file could not be imported
        self._unlisted = sum(not task.name for task in tasks)

    @property
    def results(self) -> list[Audited]:
        return [result for _, result in sorted(self._results.items())]

    def steps(self, listed: Callable[[], None]) -> Iterator[Step]:
        """How far it is; `listed` is called when all operations are known."""
        with Pool(
            perform, jobs=1, limit=self.limit, isolated=True, preload=preload
        ) as pool:
            pool.add(task for task in self.tasks if self._is_selected(task.name))
            for answer in pool.answers():
                if answer is not None:
                    pool.add(self._answered(answer))
                    self._unlisted -= not answer.item.name
                    if not (answer.item.name or self._unlisted):
                        listed()
                for task, told in pool.partials:
                    yield Step(task.label, *_counts(told))

    def _answered(self, answer: Answer) -> Iterator[AuditTask]:
        """Keep a result; what a listing asks for comes next."""
        task: AuditTask = answer.item
        try:
            if not answer.lost and answer.error is None:
                if "operations" in answer.result:
                    yield from self._listed(task, Listing.from_dict(answer.result))
                    return
                found = Audited.from_dict(task.label, answer.result)
            else:
                found = _lost(task, answer)
        except (ValueError, TypeError, LookupError, AttributeError):
            words = "could not tell: the worker sent what is no result"
            found = Audited(task.label, message=words)
        self.is_all_read &= bool(task.name)
        file = task.source.label if task.source else ""
        self._results[task.place] = replace(
            found, seconds=answer.seconds, file=file, name=task.name
        )

    def _listed(self, task: AuditTask, found: Listing) -> Iterator[AuditTask]:
        assert task.source is not None
        self.found += [(name, task.source.module) for name, _ in found.operations]
        for i, (name, native) in enumerate(found.operations):
            if not self._is_selected(name):
                continue
            said = settings_for(self.operations, name, task.source.module)
            own = {"domain": tuple(said["domain"])} if "domain" in said else {}
            for j, framework in enumerate(frameworks_for(native, self.frameworks)):
                yield replace(
                    task,
                    label=f"{task.label}:{name}",
                    place=(*task.place, i, j),
                    name=name,
                    options={**own, **task.options, "framework": framework or None},
                )

    def _is_selected(self, name: str) -> bool:
        parts = self.select if name else ()
        return not parts or any(part in name for part in parts)


def _counts(told: Any) -> tuple[int, int] | tuple[()]:
    match told:
        case [int(done), int(total)]:
            return done, total
    return ()


def _lost(task: AuditTask, answer: Answer) -> Audited:
    """Why there is no result, and how far it came."""
    if answer.error is not None:
        words = str(answer.error)
        last = words.strip().splitlines()[-1]
        return Audited(task.label, None, clean(f"internal error: {last}"), clean(words))
    message = answer.lost
    if answer.phase in ("", "imported"):
        message += ", while the file was imported"
    elif counts := _counts(answer.partial):
        message += f"; until then: {counts[0]:,} of {counts[1]:,} inputs"
    details = places_in(answer.trace, task.root)
    return Audited(task.label, None, clean(message), clean(details))


def status_of(
    results: Sequence[Audited],
    limit: float,
    *,
    allow_inconclusive: bool = False,
    allow_empty: bool = False,
) -> Exit:
    """Whether any is beyond the limit, else whether any could not be judged."""
    if not results and allow_empty:
        return Exit.FINE
    if any(result.beyond(limit) for result in results):
        return Exit.WRONG
    # As for a check: that it could not run is never a matter of course
    is_judged = results and all(
        r.is_judged or (allow_inconclusive and (r.refused or r.report is not None))
        for r in results
    )
    return Exit.FINE if is_judged else Exit.UNJUDGED
