"""Not a number, not twice the same, wrong at one point alone."""

from __future__ import annotations

import numpy as np

from .answer import Answer
from .case import Case
from .places import places
from .regions import region


def not_finite(case: Case) -> Answer | None:
    """The derivative is a number and the gradient is not."""
    with np.errstate(all="ignore"):
        g = case.ground.point.pull(case.ground.upstream())[case.part.slice]
    bad = ~np.isfinite(g)
    if not np.any(bad):
        return None
    values = case.ground.x[case.part.slice][bad]
    name = case.part.name
    where = places(case.part, bad) or name
    if np.all(values == values[0]):
        where = f"at {name} = {values[0]:.6g} ({where})"
    kind = "NaN" if np.any(np.isnan(g[bad])) else "infinite"
    return Answer(
        "not finite",
        f"the gradient is {kind} where the derivative is finite: {where}",
        "choose the argument of the function that overflows or divides, not its result:"
        " where(ok, f(where(ok, x, 1)), 0)",
    )


def not_the_same(case: Case) -> Answer | None:
    """The same call gives other values each time."""
    u = case.ground.upstream()
    first, again = (case.ground.point.pull(u)[case.part.slice] for _ in range(2))
    if np.array_equal(first, again, equal_nan=True):
        return None
    return Answer(
        "not deterministic",
        "the gradient differs from call to call with the same upstream gradient",
        "don't draw random numbers in the rule, and don't write to what it was given",
    )


def at_a_point(case: Case) -> Answer | None:
    """Wrong at a kink: at ties, or at one value, and right around it."""
    if not np.any(case.evidence.kinks):
        return None
    near = case.looked(case.near(case.ground.x))
    if near is None or np.any(near.states(case.random) > 0):
        return None
    return region(case)
