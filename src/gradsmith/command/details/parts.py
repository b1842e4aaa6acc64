"""What the page shows of an operation beside its check, each part by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any

from ...core.errors import GradsmithError
from ...report.result import Document, Result
from ...tools.check.inputs import CheckInputs
from ...tools.check.problem import Problem, is_perturbed, problem_for
from ...tools.check.samples import is_elementwise, samples
from .timing import timing

Detail = Callable[[], Result]
_TITLES = {
    "audit": "The audit",
    "samples": "The comparison with differences",
    "timing": "Timing",
    "survival": "Survival",
    "nan": "The search for NaN",
    "memory": "Memory",
}


@dataclass(frozen=True)
class LeftOut(Result):
    """A part that could not be had, and why."""

    title: str
    skipped: str

    @property
    def ok(self) -> bool:
        return True

    def document(self) -> Document:
        return Document(f"{self.title} was left out: {self.skipped}")


def details(
    op: Any, given: CheckInputs, *, framework: str | None, seed: int, thorough: bool
) -> dict[str, Detail]:
    """The parts of the page beside the check, by name.

    A part that can't be had gives `LeftOut`: none stands in the way of another, and
    the verdict of the check stands in any case.
    """

    def problem() -> Problem:
        return problem_for(op, given, framework, caller="report")

    found: dict[str, Detail] = {
        "audit": lambda: audited(op, given, problem(), seed),
        "samples": lambda: samples(problem(), seed),
        "timing": lambda: timing(problem()),
        "nan": lambda: not_finite(op, given, framework),
        "memory": lambda: kept(problem()),
    }
    if thorough:
        found["survival"] = lambda: survived(op, given, framework)
    return {name: _guarded(_TITLES[name], detail) for name, detail in found.items()}


def _guarded(title: str, detail: Detail) -> Detail:
    def guarded() -> Result:
        try:
            return detail()
        except GradsmithError as error:
            return LeftOut(title, str(error).partition("\n")[0])
        except Exception as error:
            words = str(error).strip().partition("\n")[0]
            return LeftOut(title, f"{type(error).__name__}: {words}".rstrip(": "))

    return guarded


def survived(op: Any, given: CheckInputs, framework: str | None) -> Result:
    from ...tools.survival import survives

    return survives(op, *given.args, framework=framework, **given.kwargs)


def not_finite(op: Any, given: CheckInputs, framework: str | None) -> Result:
    from ...tools.nan import find_nan

    return find_nan(op, *given.args, framework=framework, **given.kwargs)


def kept(problem: Problem) -> Result:
    from ...tools.memory import memory

    args, kwargs = problem.native_inputs()
    with problem.precision():
        return memory(problem.call, *args, **kwargs)


def audited(op: Any, given: CheckInputs, problem: Problem, seed: int) -> Result:
    """Over the whole domain: within the bounds of the example, or all numbers.

    An elementwise operation is one of numbers, whatever the shape of its example.
    """
    from ...tools.audit.api import audit

    if given.kwargs:
        raise GradsmithError(
            "its inputs are given by name, which an audit does not take"
        )
    numbers = is_elementwise(problem)
    inputs = tuple(0.5 if numbers and is_perturbed(x) else x for x in given.args)
    domain = _domain(problem)
    options: Any = {"framework": problem.framework.name, "seed": seed}
    return audit(op, domain, inputs=inputs, **options)


def _domain(problem: Problem) -> Any:
    """The bounds of the arguments by name; None if there are none."""
    ends = [
        (-inf if low is None else low, inf if high is None else high)
        for low, high in problem.bounds
    ]
    if all(pair == (-inf, inf) for pair in ends):
        return None
    named = dict(zip(problem.names, ends, strict=True))
    return ends[0] if len(ends) == 1 else named
