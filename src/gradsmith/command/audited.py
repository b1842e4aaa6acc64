"""What is audited: operations of ours, found as for `check`, and any named function."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..core.errors import GradsmithError
from ..report.result import FAILED, Document, Line, Result, plain
from .discovery import operations_in
from .loading import load, named, own_traceback
from .sources import sources_of
from .status import Exit


@dataclass(frozen=True)
class Candidate:
    """A function with the name that it was asked for by, or why there is none."""

    label: str
    op: Any = None
    error: BaseException | None = None


@dataclass(frozen=True)
class Audited(Result):
    """What came of one: a report, or why there is none."""

    label: str
    report: Any = None
    message: str = ""
    details: str = ""
    seconds: float = 0.0

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
        return self.report is not None and bool(self.report.value.judged)

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


def candidates_of(targets: Sequence[str], select: Sequence[str]) -> Iterator[Candidate]:
    """The functions that targets name, each once."""
    for target in targets:
        for candidate in _candidates(target):
            name = candidate.label.rpartition(":")[2]
            if not select or any(part in name for part in select):
                yield candidate


def _candidates(target: str) -> Iterator[Candidate]:
    where, colon, name = target.rpartition(":")
    is_path = Path(where).exists() or where.endswith(".py") or "/" in where
    if colon and len(where) > 1 and not is_path:
        yield _of_module(target, where, name)
        return
    for source in sources_of(target):
        try:
            module = load(source)
            found = operations_in(module)
            if source.name is not None:
                found = {source.name: named(module, source.name)}
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            yield Candidate(source.label, error=error)
            continue
        for name, op in found.items():
            yield Candidate(f"{source.label}:{name}", op)


def _of_module(target: str, where: str, name: str) -> Candidate:
    """A function of a module that can be imported, as torch.nn.functional:gelu."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return Candidate(target, named(importlib.import_module(where), name))
    except (ImportError, AttributeError) as error:
        return Candidate(
            target, error=GradsmithError(f"there is no {target!r}: {error}")
        )


@dataclass
class Auditing:
    """All of a run: `results` are in the order of the targets."""

    candidates: Sequence[Candidate]
    options: dict[str, Any]
    results: list[Audited] = field(default_factory=list)

    def go(self, watch: Callable[[str], Any]) -> None:
        """Audit each; `watch(label)` gives what is told of its progress."""
        for candidate in self.candidates:
            started = time.perf_counter()
            found = _audited(
                candidate, {**self.options, "progress": watch(candidate.label)}
            )
            seconds = time.perf_counter() - started
            self.results.append(Audited(candidate.label, *found, seconds=seconds))


def _audited(candidate: Candidate, options: dict[str, Any]) -> tuple[Any, str, str]:
    from ..tools.audit.api import audit

    try:
        if candidate.error is not None:
            raise candidate.error
        return audit(candidate.op, **options), "", ""
    except GradsmithError as error:
        message, _, details = str(error).partition("\n")
        return None, message, details
    except Exception as error:
        words = str(error).partition("\n")[0]
        message = f"raised {type(error).__name__}: {words}".rstrip(": ")
        return None, message, own_traceback(error, str(Path.cwd()))


def status_of(results: Sequence[Audited], limit: float) -> Exit:
    """Whether any is beyond the limit, else whether any could not be judged."""
    if any(result.beyond(limit) for result in results):
        return Exit.WRONG
    is_judged = results and all(result.is_judged for result in results)
    return Exit.FINE if is_judged else Exit.UNJUDGED
