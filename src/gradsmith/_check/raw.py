"""The raw backward: what the rule itself returns, before the framework repairs it.

PyTorch sums a gradient that was not summed and casts one of another dtype, TensorFlow
takes any shape, JAX any dtype. A recorder in the place of the rule sees what it gave.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

import numpy as np

from .._contract.leaves import MisfitError, checked
from .._errors import GradientContractError
from .._subject import of_operation
from ..frameworks import load
from .answers import Answer, StructureError, answers
from .first import Ground
from .flat import flat
from .model import Finding, Verdict
from .native import evaluated, given, signed
from .problem import Problem
from .session import Session

WHAT = "contract"


def look(session: Session, problem: Problem, scenario: str = "given") -> None:
    """Each gradient against its argument, in the dtypes given and in the other one."""
    if problem.subject.altered is None:
        return
    if problem.framework != "numpy":
        load(problem.framework)  # it describes the framework's arrays
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
    return [problem, other]


def _findings(session: Session, problem: Problem, scenario: str) -> list[Finding]:
    """Raises what the rule raises, unless it is about what it returned."""
    seen: list[Any] = []
    xs = given(problem)
    raised = None
    with problem.altered(recording(seen)) as recorded:
        point = evaluated(recorded, xs)
        random = session.random("raw")
        dys = point.upstream([signed(random, shape) for shape in point.shapes()])
        try:
            point.pull(dys)
        except Exception as error:
            raised = error
    if isinstance(raised, GradientContractError):
        return [_of_contract(str(raised), scenario)]
    found = list(_misfits(session, problem, xs, seen, scenario))
    if raised is not None and not found:
        raise raised
    return found


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
        finding = _misfit(problem, answer, scenario)
        if finding is not None:
            yield finding
        elif answer.gradient is None and _matters(session, problem, answer.name):
            yield _wrong_none(answer.name, scenario)


def _is_reverse(problem: Problem) -> bool:
    """Whether the rule is a framework's own, and gives gradients, not tangents."""
    call = problem.subject.call
    return of_operation(call) is None and not hasattr(call, "defjvp")


def _misfit(problem: Problem, answer: Answer, scenario: str) -> Finding | None:
    try:
        checked(answer.name, answer.spec, answer.gradient)
    except MisfitError as misfit:
        if _is_missing_sum(answer):
            return _missing_sum(problem, answer, scenario)
        what = next((w for w in ("shape", "dtype") if w in misfit.what), WHAT)
        message = f"the gradient {misfit.what}\n{misfit.details}"
        return Finding(what, message, argument=answer.name, scenario=scenario)
    return None


def _is_missing_sum(answer: Answer) -> bool:
    shape, expected = getattr(answer.gradient, "shape", None), answer.spec.shape
    if shape is None or tuple(shape) == tuple(expected):
        return False
    try:
        return np.broadcast_shapes(tuple(shape), tuple(expected)) == tuple(shape)
    except ValueError:
        return False


def _missing_sum(problem: Problem, answer: Answer, scenario: str) -> Finding:
    name, got = answer.name, tuple(answer.gradient.shape)
    hidden = ""
    if problem.framework == "torch":
        hidden = "\nPyTorch sums it for you, which hides that the formula is wrong"
    return Finding(
        "shape",
        f"the gradient was not summed over the axes along which {name} was broadcast: "
        f"its shape is {got}, not {tuple(answer.spec.shape)}{hidden}",
        argument=name,
        scenario=scenario,
        diagnosis="missing broadcast sum",
        repair=f"return gs.unbroadcast(gradient, {name}.shape)",
    )


def _matters(session: Session, problem: Problem, name: str) -> bool:
    """Whether the outputs change with an argument, by differences, twice."""
    if problem.subject.surrogate is not None:
        return False
    ground = Ground(flat(problem.in_dtype("float64")), session.random("none"))
    part = next(p for p in ground.flat.arguments.parts if p.name == name)
    chosen = np.zeros(ground.x.size, bool)
    chosen[part.slice] = True
    for step in (0.125, 0.09375):
        tests = ground.along(part, chosen, step)
        if not any(test.is_wrong and test.says_something for test in tests):
            return False
    return True


def _wrong_none(name: str, scenario: str) -> Finding:
    return Finding(
        "none",
        f"the rule returns None for {name}, which says that the outputs don't depend "
        "on it; by differences they do",
        argument=name,
        scenario=scenario,
        repair=f"return the gradient of {name}",
    )
