"""The order of the checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import chain

import numpy as np

from ...core.errors import GradsmithError
from ...core.progress import Progress, without_warnings
from .budget import OutOfTimeError
from .contract import NO_GRADIENT, check_contract
from .first_order import FIRST_ORDER, check_first_order
from .forward_mode import check_forward_mode
from .grade import RECTIFIED
from .linearity import LINEARITY, check_linearity
from .memory_layout import check_memory_layout
from .model import Verdict
from .native import reason
from .noise import MANY
from .precision import check_precision
from .preparation import evaluate_first, prepare
from .problem import Arrays, Problem
from .purity import SECOND_BACKWARD, RandomOperationError, check_purity
from .scenarios import Scenario, constants_of, scenarios
from .second_order import check_second_order
from .session import GIVEN, PART, Session
from .sizes import emptied, truncated_if_large
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
OTHERS = "other inputs like those given"
PASSES = 40  # over all elements, that first order may take
THOROUGH = {"compiled, vectorized, other frameworks": check_thoroughly}


def run(session: Session, *, thorough: bool) -> None:
    """Run all checks, on the inputs given and on others like them."""
    progress = Progress("check", session.problem.info.name)
    budget = session.problem.budget

    def first() -> tuple[Arrays, str]:
        with _threads(session.problem):
            return evaluate_first(session)

    def work() -> None:
        with _threads(session.problem):
            problem = prepare(session, outputs)
        if problem is not None:
            _run_checks(session, problem, progress, thorough)

    try:
        with without_warnings(), np.errstate(all="ignore"):
            # What is compiled, or takes long, can't be interrupted.
            outputs = budget.run_aside(first) if budget.compiled else first()
            (budget.run_aside if session.is_hurried else _call)(work)
    except OutOfTimeError:
        _note_time(session)
    except RandomOperationError as error:  # which prepare did not see
        session.give_up(str(error))
    finally:
        progress.close()


def _call(work: Callable[[], None]) -> None:
    work()


def _note_time(session: Session) -> None:
    """What was not reached before the time was up; no verdict without first order."""
    seconds = session.problem.budget.seconds
    if session.in_no_time is not None:
        session.in_no_time()
    known = [each.what for each in session.checks if each.scenario in (GIVEN, PART)]
    if FIRST_ORDER in known or session.findings or session.undecided:
        left = ", ".join(session.pending)
        session.note(f"not reached in {seconds:g} s: {left}")
    else:
        session.give_up(
            f"{seconds:g} s are not enough to compare the gradient with differences; "
            "give it more by gs.check.options(seconds=...), or smaller inputs"
        )


def _threads(problem: Problem) -> AbstractContextManager[None]:
    """Small arrays are not worth the threads of a framework."""
    small = sum(x.size for x in problem.xs) < MANY
    return problem.arrays.single_threaded() if small else nullcontext()


def _run_checks(
    session: Session, given: Problem, progress: Progress, thorough: bool
) -> None:
    """Of large inputs, first order compares all elements, the other checks some.

    Of a slow operation, and in little time, first order comes first: it says most.
    """
    problem, where = _some(given)
    late = LATE | THOROUGH if thorough else LATE
    session.pending = [*EARLY, FIRST_ORDER, OTHERS, *late]
    compares = problem.info.surrogate is None and problem.info.linear
    for name, check in EARLY.items():
        progress(name)
        session.at = problem
        with _threads(problem):
            check(session, problem, where)
        session.pending.remove(name)
        if session.has_found("contract", "shape"):
            return  # there is no gradient to check
        missing = {f.argument or "" for f in session.limits if f.what == NO_GRADIENT}
        spoils = SECOND_BACKWARD in [f.what for f in session.limits]
        given, problem = (
            replace(each.freezing(missing), spoils_residuals=spoils)
            for each in (given, problem)
        )
        # Quickly found, and it tells what a disagreement is: a clipped dy, say
        is_linear = LINEARITY not in session.pending
        hurries = session.solves or session.is_hurried
        hurries = hurries or (problem.budget.is_short and is_linear)
        if hurries and compares and not session.findings:
            _check_given(session, given, progress)
    if problem.info.surrogate is not None:
        session.note(f"a surrogate on purpose: {problem.info.surrogate}")
    elif not compares:
        session.note(
            "a rule that is not linear in dy is no derivative: first order is skipped"
        )
    elif not session.findings:
        _check_given(session, given, progress)
    elif session.unclipped is not None:
        # Between its bounds a rule that clips has to be the derivative all the same.
        _check_given(session, replace(given, unclipped=session.unclipped), progress)
    others = replace(problem, unclipped=session.unclipped)
    rectified = [f.diagnosis for f in session.findings] == [RECTIFIED]
    compared = compares and (rectified or not session.findings)

    def check_elsewhere() -> None:
        if compared:
            _check_others(session, others, progress)
        for name, check in late.items():
            if session.findings:
                break
            progress(name)
            session.at = problem
            with _threads(problem):
                check(session, problem, where)
            session.pending.remove(name)

    problem.budget.run_aside(check_elsewhere)


def _some(given: Problem) -> tuple[Problem, str]:
    """Not too large a part of the inputs given, and its name."""
    some = truncated_if_large(given)
    return (given, GIVEN) if some is None else (some, PART)


def _check_given(session: Session, given: Problem, progress: Progress) -> None:
    """First order on the inputs given, once."""
    if FIRST_ORDER in session.pending:
        progress(GIVEN)
        left = given.budget.left
        if left is not None and PASSES * session.took > left:
            some, where = _some(given)
            if where == PART:  # there is time for that
                check_first_order(session, Scenario(PART, some, is_given=True))
        with _threads(given):
            check_first_order(session, Scenario(GIVEN, given, is_given=True))
        session.pending.remove(FIRST_ORDER)


def _check_others(session: Session, problem: Problem, progress: Progress) -> None:
    """First order on others like them."""
    random = session.random("scenarios")
    others = scenarios(problem, _constants(problem), random)
    for scenario in chain(_given_by_caller(session, problem), others):
        progress(scenario.name)
        with _threads(scenario.problem):
            check_first_order(session, scenario)
    _check_empty_arrays(session, problem)
    session.pending.remove(OTHERS)


def _given_by_caller(session: Session, problem: Problem) -> Iterator[Scenario]:
    for i, other in enumerate(session.more(), start=1):
        if other.names != problem.names:
            raise GradsmithError(
                f"inputs= gave {', '.join(other.names) or 'no arrays'} at number {i}, "
                f"and the operation is checked by {', '.join(problem.names)}"
            )
        more = replace(problem, inputs=other.inputs)
        yield Scenario(f"number {i} of inputs=", more, is_given=True)


def _check_empty_arrays(session: Session, problem: Problem) -> None:
    """Where the operation takes arrays without elements, the rule has to.

    One that iterates may never end there: it is not tried.
    """
    for name, empty in () if problem.traits.iterates else emptied(problem):
        session.at = empty
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
