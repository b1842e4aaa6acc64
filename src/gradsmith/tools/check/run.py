"""The order in which an operation is looked at."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np

from ...core.progress import Progress, without_warnings
from . import forward, layouts, precisions, purity, raw, second, upstream
from . import thorough as modes
from .beginning import smaller
from .comparison import Test
from .confirm import confirmed
from .constants import constants_of
from .diagnosis import explain
from .finite import not_finite
from .first import MANY, Ground
from .flat import flat
from .model import Finding, Verdict
from .native import reason
from .problem import Problem
from .ready import ready
from .scenarios import Scenario, scenarios
from .session import GIVEN, PART, Session
from .sizes import emptied


def run(session: Session, *, thorough: bool) -> None:
    """Look at everything, on the inputs given and on others like them."""
    progress = Progress("check", session.problem.info.name)
    try:
        with without_warnings(), np.errstate(all="ignore"):
            with _threads(session.problem):
                problem = ready(session)
            if problem is not None:
                _look(session, problem, progress, thorough)
    finally:
        progress.close()


def _threads(problem: Problem) -> AbstractContextManager[None]:
    """Small arrays are not worth the threads of a framework."""
    small = sum(x.size for x in problem.xs) < MANY
    return problem.arrays.single_threaded() if small else nullcontext()


def _look(session: Session, given: Problem, progress: Progress, thorough: bool) -> None:
    """What needs no differences first: it says best what is wrong.

    Of large inputs, all elements are compared in first order, and some otherwise.
    """
    problem, where = _some(given)
    later = (precisions, forward, second, *([modes] if thorough else []))
    with _threads(problem):
        for what in (raw, purity, upstream, layouts):
            progress(what.__name__.rpartition(".")[2])
            what.look(session, problem, where)
            if session.has_found("contract", "shape"):
                return  # there is no gradient to look at
    if problem.info.surrogate is not None:
        session.note(f"a surrogate on purpose: {problem.info.surrogate}")
    elif not problem.info.linear:
        session.note("what is not linear in dy is no derivative: not compared with it")
    elif not session.findings:
        _look_at_values(session, given, problem, progress)
    with _threads(problem):
        for what in later:
            if session.findings:
                break
            progress(what.__name__.rpartition(".")[2])
            what.look(session, problem, where)


def _some(given: Problem) -> tuple[Problem, str]:
    """Not too large a part of the inputs given, and what to call it."""
    large = sum(x.size for x in given.xs) >= MANY
    some = smaller(given) if large else None
    return (given, GIVEN) if some is None else (some, PART)


def _look_at_values(
    session: Session, given: Problem, problem: Problem, progress: Progress
) -> None:
    """First order, on the inputs given and on others like them."""
    constants = _constants(problem)
    random = session.random("scenarios")
    for scenario in scenarios(given, problem, constants, random):
        progress(scenario.name)
        with _threads(scenario.problem):
            first_order(session, scenario)
        if session.findings and scenario.is_given:
            return
    _look_at_nothing(session, problem)


def _look_at_nothing(session: Session, problem: Problem) -> None:
    """Arrays without elements: where the operation takes them, the rule has to."""
    for name, empty in emptied(problem):
        try:
            ys = empty.value(empty.xs)
        except Exception:
            continue
        try:
            empty.linear(empty.xs).pull([np.ones_like(y) for y in ys])
        except Exception as error:
            session.note(f"the rule fails on arrays with {name}: {reason(error)}")
        else:
            session.looked("empty arrays", name, Verdict.RIGHT)


def first_order(session: Session, scenario: Scenario) -> None:
    """Compare the rule with differences on the inputs of one scenario."""
    ground = _ground(scenario, session.random(scenario.name))
    if ground is None:
        return
    seen: dict[str, float] = {}  # by the sharpest comparison of each argument
    for test in ground.tests(even=scenario.even, done=session.is_wrong):
        if test.is_wrong and confirmed(ground, test) and scenario.is_inside:
            _report(session, scenario, ground, test)
        elif test.says_something:
            sharpest = min(test.resolution, seen.get(test.part.name, np.inf))
            seen[test.part.name] = sharpest
    finding = not_finite(ground, scenario.name)
    if finding is not None and not session.is_wrong(finding.argument):
        session.found(finding)
    if seen:
        least = max(seen.values())
        session.looked("first order", scenario.name, Verdict.RIGHT, least)
    elif scenario.is_given and not session.findings:
        session.gave_up("the differences do not settle at the given inputs: try others")


def _ground(scenario: Scenario, random: np.random.Generator) -> Ground | None:
    """The point of a scenario; None if it is outside of the operation's domain."""
    if scenario.is_given:
        return Ground(flat(scenario.problem), random)
    try:
        ground = Ground(flat(scenario.problem), random)
    except Exception:
        return None
    return ground if np.any(np.isfinite(ground.y)) else None


def _report(session: Session, scenario: Scenario, ground: Ground, test: Test) -> None:
    found = explain(ground, test, session)
    session.found(
        Finding(
            "first order",
            found.message,
            argument=test.part.name,
            output=found.output,
            elements=found.elements,
            scenario=scenario.name,
            error=test.gap / test.scale,
            noise=test.resolution,
            diagnosis=found.diagnosis,
            repair=found.repair,
        )
    )


def _constants(problem: Problem) -> list[float]:
    framework = problem.framework
    functions = framework.natives.functions if framework.has("natives") else ()
    return constants_of(problem.info.call, functions)
