"""The order of the checks."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import numpy as np

from ...core.progress import Progress, without_warnings
from .contract import check_contract
from .first_order import check_first_order
from .forward_mode import check_forward_mode
from .linearity import check_linearity
from .memory_layout import check_memory_layout
from .model import Verdict
from .native import reason
from .noise import MANY
from .precision import check_precision
from .preparation import prepare
from .problem import Problem
from .purity import check_purity
from .scenarios import constants_of, scenarios
from .second_order import check_second_order
from .session import GIVEN, PART, Session
from .sizes import emptied, truncated
from .thorough import check_thoroughly

# Checks that need no differences come first: they say best what is wrong.
EARLY = {
    "contract": check_contract,
    "purity": check_purity,
    "linearity": check_linearity,
    "memory layout": check_memory_layout,
}
LATE = {
    "precision": check_precision,
    "forward mode": check_forward_mode,
    "second order": check_second_order,
}
THOROUGH = {"compiled, vectorized, other frameworks": check_thoroughly}


def run(session: Session, *, thorough: bool) -> None:
    """Run all checks, on the inputs given and on others like them."""
    progress = Progress("check", session.problem.info.name)
    try:
        with without_warnings(), np.errstate(all="ignore"):
            with _threads(session.problem):
                problem = prepare(session)
            if problem is not None:
                _run_checks(session, problem, progress, thorough)
    finally:
        progress.close()


def _threads(problem: Problem) -> AbstractContextManager[None]:
    """Small arrays are not worth the threads of a framework."""
    small = sum(x.size for x in problem.xs) < MANY
    return problem.arrays.single_threaded() if small else nullcontext()


def _run_checks(
    session: Session, given: Problem, progress: Progress, thorough: bool
) -> None:
    """Of large inputs, first order compares all elements, the other checks some."""
    problem, where = _some(given)
    with _threads(problem):
        for name, check in EARLY.items():
            progress(name)
            check(session, problem, where)
            if session.has_found("contract", "shape"):
                return  # there is no gradient to check
    if problem.info.surrogate is not None:
        session.note(f"a surrogate on purpose: {problem.info.surrogate}")
    elif not problem.info.linear:
        session.note(
            "a rule that is not linear in dy is no derivative: first order is skipped"
        )
    elif not session.findings:
        _check_values(session, given, problem, progress)
    with _threads(problem):
        for name, check in (LATE | THOROUGH if thorough else LATE).items():
            if session.findings:
                break
            progress(name)
            check(session, problem, where)


def _some(given: Problem) -> tuple[Problem, str]:
    """Not too large a part of the inputs given, and its name."""
    large = sum(x.size for x in given.xs) >= MANY
    some = truncated(given) if large else None
    return (given, GIVEN) if some is None else (some, PART)


def _check_values(
    session: Session, given: Problem, problem: Problem, progress: Progress
) -> None:
    """First order, on the inputs given and on others like them."""
    constants = _constants(problem)
    random = session.random("scenarios")
    for scenario in scenarios(given, problem, constants, random):
        progress(scenario.name)
        with _threads(scenario.problem):
            check_first_order(session, scenario)
        if session.findings and scenario.is_given:
            return
    _check_empty_arrays(session, problem)


def _check_empty_arrays(session: Session, problem: Problem) -> None:
    """Where the operation takes arrays without elements, the rule has to."""
    for name, empty in emptied(problem):
        try:
            ys = empty.value(empty.xs)
        except Exception:
            continue
        try:
            empty.linearize(empty.xs).pull([np.ones_like(y) for y in ys])
        except Exception as error:
            session.note(f"the rule fails on arrays with {name}: {reason(error)}")
        else:
            session.record("empty arrays", name, Verdict.RIGHT)


def _constants(problem: Problem) -> list[float]:
    framework = problem.framework
    functions = framework.natives.functions if framework.has("natives") else ()
    return constants_of(problem.info.call, functions)
