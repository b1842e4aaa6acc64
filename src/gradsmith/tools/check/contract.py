"""Does what the rule itself returns fit its arguments?

Frameworks sum a gradient that was not summed, cast one of another dtype, or accept any
shape. A recorder in place of the rule sees what it returned before that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from typing import Any

import numpy as np

from ...core.arrays import described
from ...core.cotangent import Spec
from ...core.errors import GradientContractError
from ...frameworks._natives import StructureError
from ...operations.contract.leaves import MisfitError, checked
from ...operations.info import of_operation
from .model import Finding, Verdict
from .native import evaluate, native_inputs
from .problem import Gradients, Problem
from .session import GIVEN, Session

CONTRACT = "contract"
# What the framework casts or sums for the rule, and an argument that has no gradient
NO_GRADIENT = "no gradient"
SMALL = (1e-3, -1e-4)  # relative; a step is hardly crossed by both
LIMITS = ("dtype", "not summed", NO_GRADIENT)


def check_contract(session: Session, problem: Problem, scenario: str) -> None:
    """Each gradient against its argument, in the dtypes given and in the other one."""
    if problem.info.altered is None:
        return
    given = session.problem.dtypes
    for each in sorted(_in_two_dtypes(problem), key=lambda p: p.dtypes != given):
        try:
            found = _findings(session, each, scenario)
        except Exception:
            if each.dtypes == given:
                raise
            continue  # the other dtype is ours, and what the rule says of it no matter
        for finding in found:
            limited = finding.what in LIMITS or each.dtypes != given
            if finding.what == NO_GRADIENT and _is_needed(problem, finding.argument):
                limited = False
            (session.limit if limited else session.found)(finding)
        if found:
            return
    session.record(CONTRACT, scenario, Verdict.RIGHT)


def check_connected(session: Session, problem: Problem, gradients: Gradients) -> None:
    """An argument of a function may have no gradient, where others have one."""
    missing = [
        n for n, g in zip(problem.perturbed, gradients, strict=True) if g is None
    ]
    if problem.info.altered is not None or len(missing) == len(gradients):
        return
    for name in missing:
        if name not in (problem.info.captured or ()) and _changes_outputs(
            session, problem, name
        ):
            words = "there is none, and the outputs do change with it"
            session.limit(Finding(NO_GRADIENT, words, argument=name, scenario=GIVEN))


def _is_needed(problem: Problem, name: str | None) -> bool:
    """Whether nothing else has a gradient, or it is a parameter of a module."""
    return problem.perturbed == (name,) or name in (problem.info.captured or ())


def _in_two_dtypes(problem: Problem) -> list[Problem]:
    """A float32 that leaks shows in float64, and a float64 in float32."""
    other = problem.in_dtype("float32")
    if other.dtypes == problem.dtypes:
        other = problem.in_dtype("float64")
    try:
        other.value(other.xs)
    except Exception:  # it takes the one dtype only
        return [problem]
    return [problem] if problem.fixed_dtypes else [problem, other]


def _findings(session: Session, problem: Problem, scenario: str) -> list[Finding]:
    """Raises what the rule raises, unless it is about what it returned."""
    seen: list[Any] = []
    xs = native_inputs(problem)
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
            found = evaluate(recorded, xs)
            return found.pull(found.upstream([np.ones(s) for s in found.shapes()]))

        with suppress(Exception), problem.precision():
            if problem.calculus.abstract(pulled, xs):
                return None
        seen.clear()
        try:
            pulled(xs)
        except Exception as error:
            return error
    return None


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


def _of_contract(message: str, scenario: str) -> Finding:
    """What our own contract says of what a rule returned."""
    name = re.search(r"^the gradient .* for '(\S+)'", message)
    unsummed = "was not summed over the broadcast" in message
    return Finding(
        CONTRACT,
        message,
        argument=name[1] if name else None,
        scenario=scenario,
        diagnosis="missing broadcast sum" if unsummed else None,
    )


# --- native rules; ours have their contract


@dataclass(frozen=True)
class Returned:
    """What a rule returned for an array that has a gradient."""

    name: str
    spec: Spec
    gradient: Any


def _misfits(
    session: Session, problem: Problem, xs: list[Any], seen: list[Any], scenario: str
) -> Iterator[Finding]:
    """The gradients that don't fit, among what a native rule returned."""
    info = problem.info
    if not seen or of_operation(info.call) is not None or not info.reverse:
        return
    try:
        every = _returned(problem, xs, seen[-1])
    except StructureError as error:
        yield Finding(CONTRACT, str(error), scenario=scenario, refused=True)
        return
    for each in every:
        finding = _misfit(problem, each, scenario)
        if finding is not None:
            yield finding
        elif each.gradient is None and _changes_outputs(session, problem, each.name):
            yield _wrong_none(each.name, scenario)


def _returned(problem: Problem, xs: list[Any], returned: Any) -> list[Returned]:
    """The gradients of the arrays `xs`, each with its argument."""
    natives = problem.framework.natives
    args, kwargs = problem.inputs
    arrays = dict(zip(problem.perturbed, xs, strict=True))
    found = []
    for name, gradient in natives.gradients_in(problem.info, args, kwargs, returned):
        spec = described(arrays[name]) if name in arrays else None
        if spec is not None:
            found.append(Returned(name, spec, gradient))
    return found


def _misfit(problem: Problem, returned: Returned, scenario: str) -> Finding | None:
    try:
        checked(returned.name, returned.spec, returned.gradient)
    except MisfitError as misfit:
        if _is_missing_sum(returned):
            return _missing_sum(problem, returned, scenario)
        what = next((w for w in ("shape", "dtype") if w in misfit.what), CONTRACT)
        message = f"the gradient {misfit.what}\n{misfit.details}"
        return Finding(what, message, argument=returned.name, scenario=scenario)
    return None


def _is_missing_sum(returned: Returned) -> bool:
    shape, expected = getattr(returned.gradient, "shape", None), returned.spec.shape
    if shape is None or tuple(shape) == tuple(expected):
        return False
    try:
        return np.broadcast_shapes(tuple(shape), tuple(expected)) == tuple(shape)
    except ValueError:
        return False


def _missing_sum(problem: Problem, returned: Returned, scenario: str) -> Finding:
    name, got = returned.name, tuple(returned.gradient.shape)
    hidden = ""
    if problem.framework.natives.sums_gradients:
        who = problem.framework.title
        hidden = f"\n{who} sums it for you, which hides that the formula is wrong"
    return Finding(
        "not summed" if hidden else "shape",
        f"the gradient was not summed over the axes along which {name} was broadcast: "
        f"its shape is {got}, not {tuple(returned.spec.shape)}{hidden}",
        argument=name,
        scenario=scenario,
        diagnosis="missing broadcast sum",
        repair=f"return gs.unbroadcast(gradient, {name}.shape)",
    )


def _changes_outputs(session: Session, problem: Problem, name: str) -> bool:
    """Whether small changes of an argument change the outputs, each time."""
    if problem.info.surrogate is not None:
        return False
    random, before = session.random("none"), problem.value(problem.xs)
    for step in SMALL:
        near = lambda x, h=step: x + h * random.uniform(0.5, 1, x.shape) * _size(x)
        moved = problem.with_one(name, near)
        try:
            ys = moved.value(moved.xs)
        except Exception:  # outside of its domain
            return False
        pairs = zip(before, ys, strict=True)
        if all(np.array_equal(a, b, equal_nan=True) for a, b in pairs):
            return False
    return True


def _size(x: np.ndarray) -> np.ndarray:
    return np.where(x == 0, 1.0, np.abs(x))


def _wrong_none(name: str, scenario: str) -> Finding:
    return Finding(
        NO_GRADIENT,
        f"the rule returns None for {name}, which says that the outputs don't depend "
        "on it; they do",
        argument=name,
        scenario=scenario,
        repair=f"return the gradient of {name}",
    )
