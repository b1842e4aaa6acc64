"""What a checker said of a subject, and what ours says."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

from .accepted import accepted
from .corpus import Subject

OURS = "gs.check"


@dataclass(frozen=True)
class Outcome:
    """One check. `alarm`: the gradient was called wrong, whether it is or not.

    So it is if the verdict is right but for a limit that says what is wrong, such as a
    second order that disagrees.
    """

    operation: str
    kind: str | None
    framework: str
    held_out: bool
    dtype: str
    seed: int
    checker: str
    verdict: str  # that of gs.check, or "raised"
    seconds: float
    diagnosis: str | None = None  # the first that was given
    diagnosed: bool | None = None  # whether it is right; None if the kind has no name
    text: str = ""  # the report, where it surprises
    limited: bool = False  # a limit says what is wrong

    @property
    def alarm(self) -> bool:
        return self.verdict in ("wrong", "surrogate") or self.limited

    @property
    def surprising(self) -> bool:
        return self.alarm == (self.kind is None) or self.verdict == "raised"

    @property
    def name(self) -> str:
        return f"{self.operation}/{self.kind or 'right'}/{self.framework}/{self.dtype}"


def outcome(subject: Subject, dtype: str, seed: int, checker: str) -> Outcome:
    """An outcome to be filled in."""
    return Outcome(
        subject.operation,
        subject.kind,
        subject.framework,
        subject.held_out,
        dtype,
        seed,
        checker,
        verdict="raised",
        seconds=0.0,
    )


def ours(subject: Subject, dtype: str, seed: int) -> Outcome:
    """What gs.check says; what it raises is told, and is no verdict."""
    import gradsmith as gs

    check: Any = gs.check  # type: ignore[attr-defined]
    op, xs = subject.build(), subject.inputs(dtype, seed)
    result, start = outcome(subject, dtype, seed, OURS), time.perf_counter()
    try:
        report = check.options(seed=seed)(op, *xs)
    except Exception as error:
        seconds = time.perf_counter() - start
        return replace(result, seconds=seconds, text=f"raised {error!r}"[:800])
    result = replace(
        result,
        seconds=time.perf_counter() - start,
        verdict=str(report.verdict),
        limited=any(not limit.refused for limit in report.limits),
    )
    if result.alarm and subject.diagnosis:
        result = _diagnosed(result, subject, report)
    return replace(result, text=str(report)) if result.surprising else result


def _diagnosed(result: Outcome, subject: Subject, report: Any) -> Outcome:
    """With the first diagnosis that was given, and whether it is a right one."""
    every = (*report.findings, *report.limits)
    named = [f.diagnosis for f in every if f.diagnosis is not None]
    if not named:
        return replace(result, diagnosed=False)
    words = accepted(subject.operation, subject.kind or "")
    first = str(named[0])
    right = any(word in first.lower() for word in words)
    return replace(result, diagnosis=first, diagnosed=right)
