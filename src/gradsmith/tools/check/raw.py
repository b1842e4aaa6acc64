"""The raw backward: what the rule itself returns, before the framework repairs it.

Frameworks sum a gradient that was not summed, cast one of another dtype, or take any
shape. A recorder in the place of the rule sees what it gave.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from typing import Any

import numpy as np

from ...core.errors import GradientContractError
from ...frameworks._natives import StructureError
from ...operations.info import of_operation
from .answers import answers
from .misfits import WHAT, matters, misfit_of, wrong_none
from .model import Finding, Verdict
from .native import context, evaluated, given
from .problem import Problem
from .session import Session


def look(session: Session, problem: Problem, scenario: str = "given") -> None:
    """Each gradient against its argument, in the dtypes given and in the other one."""
    if problem.info.altered is None:
        return
    for each in _in_two_dtypes(problem):
        found = _findings(session, each, scenario)
        for finding in found:
            session.found(finding)
        if found:
            return
    session.looked(WHAT, scenario, Verdict.RIGHT)


def _in_two_dtypes(problem: Problem) -> list[Problem]:
    """A float32 that leaks shows in float64, and a float64 in float32."""
    other = problem.in_dtype("float32")
    if other.dtypes == problem.dtypes:
        other = problem.in_dtype("float64")
    try:
        other.value(other.xs)
    except Exception:  # it takes the one dtype only
        return [problem]
    return [problem] if problem.fixed else [problem, other]


def _findings(session: Session, problem: Problem, scenario: str) -> list[Finding]:
    """Raises what the rule raises, unless it is about what it returned."""
    seen: list[Any] = []
    xs = given(problem)
    raised = _run(problem, xs, seen)
    if isinstance(raised, GradientContractError):
        return [_of_contract(str(raised), scenario)]
    found = list(_misfits(session, problem, xs, seen, scenario))
    if raised is not None and not found:
        raise raised
    return found


def _run(problem: Problem, xs: list[Any], seen: list[Any]) -> Exception | None:
    """Forward and backward with the recorder in place; what was raised, if anything."""
    with problem.altered(recording(seen)) as recorded:

        def pulled(xs: list[Any]) -> list[Any]:
            point = evaluated(recorded, xs)
            return point.pull(point.upstream([np.ones(s) for s in point.shapes()]))

        with suppress(Exception), context(problem):
            if problem.calculus.abstract(pulled, xs):
                return None
        seen.clear()
        try:
            pulled(xs)
        except Exception as error:
            return error
    return None


def _of_contract(message: str, scenario: str) -> Finding:
    """What our own contract says of what a rule returned."""
    name = re.search(r"^the gradient .* for '(\S+)'", message)
    unsummed = "was not summed over the broadcast" in message
    return Finding(
        WHAT,
        message,
        argument=name[1] if name else None,
        scenario=scenario,
        diagnosis="missing broadcast sum" if unsummed else None,
    )


def recording(seen: list[Any]) -> Callable[[Any], Any]:
    """Puts a recorder around a rule, which adds to `seen` what the rule returned."""

    def around(rule: Any) -> Any:
        @wraps(rule)
        def recorder(*args: Any, **kwargs: Any) -> Any:
            returned = rule(*args, **kwargs)
            seen.append(returned)
            return returned

        return recorder

    return around


def _misfits(
    session: Session, problem: Problem, xs: list[Any], seen: list[Any], scenario: str
) -> Iterator[Finding]:
    """What doesn't fit in what a native rule returned; ours has its contract."""
    if not seen or not _is_reverse(problem):
        return
    try:
        found = answers(problem, xs, seen[-1])
    except StructureError as error:
        yield Finding(WHAT, str(error), scenario=scenario)
        return
    for answer in found:
        finding = misfit_of(problem, answer, scenario)
        if finding is not None:
            yield finding
        elif answer.gradient is None and matters(session, problem, answer.name):
            yield wrong_none(answer.name, scenario)


def _is_reverse(problem: Problem) -> bool:
    """Whether the rule is a framework's own, and gives gradients, not tangents."""
    return of_operation(problem.info.call) is None and problem.info.reverse
