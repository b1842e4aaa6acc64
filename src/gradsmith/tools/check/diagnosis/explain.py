"""The order in which the usual mistakes are looked for, from special to general."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..comparison import Test
from ..first import Ground
from ..session import Session
from .answer import Answer
from .arrangement import conjugated, shifted, swapped, transposed
from .axes import missing_sum, wrong_axis, wrong_axis_inside
from .case import Case
from .large import examine
from .places import places
from .precision import precision
from .regions import region
from .simple import factor, pretended, sign, zero
from .special import at_a_point, not_finite, not_the_same
from .structure import structures
from .terms import dropped, unused_output
from .upstream import altered, is_linear
from .within import within

SMALL = 1e-4  # a relative error below this needs sharper differences


@dataclass(frozen=True)
class Explanation:
    """Where a gradient is wrong, what the mistake is, and what to do."""

    elements: str | None
    diagnosis: str | None
    message: str
    repair: str | None
    output: str | None = None


def explain(ground: Ground, test: Test, session: Session) -> Explanation:
    """Explain a comparison that came out wrong."""
    error = test.gap / test.scale if test.scale else np.inf
    random = session.random(f"diagnosis of {test.part.name}")
    case = Case(ground, test.part, random, sharp=bool(error < SMALL))
    try:
        found = _small(case) if case.is_small else examine(case, diagnosis)
        output = _output(case)
    except Exception as problem:  # most likely the operation's, at another point
        why = f"{_facts(test, error)}; what it is could not be looked at: {problem!r}"
        return Explanation(None, None, why, None)
    elements, answer = found
    if answer is None:
        return Explanation(elements, None, _facts(test, error), None, output)
    return Explanation(elements, answer.name, answer.message, answer.repair, output)


def _small(case: Case) -> tuple[str | None, Answer | None]:
    early = not_finite(case) or not_the_same(case)
    states = case.evidence.states(case.random)
    elements = places(case.part, states > 0) if len(states) else None
    return elements, early or diagnosis(case)


Look = Callable[[Case], Answer | None]
FIRST: tuple[Look, ...] = (pretended, sign, factor)
THEN: tuple[Look, ...] = (
    swapped,
    missing_sum,
    unused_output,
    transposed,
    shifted,
    conjugated,
    wrong_axis,
)
LAST: tuple[Look, ...] = (dropped, wrong_axis_inside)


def diagnosis(case: Case) -> Answer | None:
    """The mistake with the simplest explanation that was verified."""
    if not len(case.evidence.rows):
        return None
    with np.errstate(all="ignore"):
        special = at_a_point(case)
        if special is not None:
            return special
        if nothing := zero(case):
            return nothing
        if not is_linear(case.evidence, case.random):
            return altered(case) or precision(case)
        looks = (*FIRST, precision, *THEN, _regional, *LAST)
        return next(filter(None, (look(case) for look in looks)), None)


def _regional(case: Case) -> Answer | None:
    """A region, with what is wrong inside of it."""
    found = region(case)
    return None if found is None else within(case, found)


def _facts(test: Test, error: float) -> str:
    return (
        f"the gradient is not the derivative: along a random direction it gives "
        f"{test.rule:.6g}, the differences {test.low:.6g}"
        + (f" to {test.high:.6g}" if test.high != test.low else "")
        + f" (relative error {error:.1e}, noise {test.resolution:.0e})"
    )


def _output(case: Case) -> str | None:
    """The output whose upstream gradient is used wrongly, if it is one of several."""
    if len(case.ground.point.outputs.parts) < 2 or not case.is_small:
        return None
    every = structures(replace(case).evidence)
    wrong = [s.output.name for s in every if s.is_wrong]
    return wrong[0] if len(wrong) == 1 else None
