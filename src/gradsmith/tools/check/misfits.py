"""One gradient that doesn't fit its argument: what is wrong with it, in words."""

from __future__ import annotations

import numpy as np

from ...operations.contract.leaves import MisfitError, checked
from .answers import Answer
from .first import Ground
from .flat import flat
from .model import Finding
from .problem import Problem
from .session import Session

WHAT = "contract"


def misfit_of(problem: Problem, answer: Answer, scenario: str) -> Finding | None:
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
    if problem.framework.natives.sums_gradients:
        who = problem.framework.title
        hidden = f"\n{who} sums it for you, which hides that the formula is wrong"
    return Finding(
        "shape",
        f"the gradient was not summed over the axes along which {name} was broadcast: "
        f"its shape is {got}, not {tuple(answer.spec.shape)}{hidden}",
        argument=name,
        scenario=scenario,
        diagnosis="missing broadcast sum",
        repair=f"return gs.unbroadcast(gradient, {name}.shape)",
    )


def matters(session: Session, problem: Problem, name: str) -> bool:
    """Whether the outputs change with an argument, by differences, twice."""
    if problem.info.surrogate is not None:
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


def wrong_none(name: str, scenario: str) -> Finding:
    return Finding(
        "none",
        f"the rule returns None for {name}, which says that the outputs don't depend "
        "on it; by differences they do",
        argument=name,
        scenario=scenario,
        repair=f"return the gradient of {name}",
    )
