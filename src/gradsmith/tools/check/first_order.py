"""First order: the rule against differences, on the inputs of one scenario."""

from __future__ import annotations

import numpy as np

from .comparison import Comparison
from .confirm import confirmed
from .diagnosis import explain
from .flat import flatten
from .model import Finding, Verdict
from .point import Point
from .scenarios import Scenario
from .session import Session

FIRST_ORDER = "first order"
TRIED = 3


def check_first_order(session: Session, scenario: Scenario) -> None:
    """Compare the rule with differences on the inputs of one scenario."""
    point = _point(scenario, session.random(scenario.name))
    if point is None:
        return
    seen: dict[str, float] = {}  # by the sharpest comparison of each argument
    for comparison in point.comparisons(even=scenario.even, done=session.is_wrong):
        wrong = comparison.is_wrong and confirmed(point, comparison)
        if wrong and scenario.is_inside:
            session.found(_finding(session, scenario, point, comparison))
        elif comparison.says_something:
            name = comparison.part.name
            seen[name] = min(comparison.resolution, seen.get(name, np.inf))
    finding = _not_finite(point, scenario.name)
    if finding is not None and not session.is_wrong(finding.argument):
        session.found(finding)
    if seen:
        least = max(seen.values())
        session.record(FIRST_ORDER, scenario.name, Verdict.RIGHT, least)
    elif scenario.is_given and not session.findings:
        session.give_up("the differences do not settle at the given inputs: try others")


def _point(scenario: Scenario, random: np.random.Generator) -> Point | None:
    """The point of a scenario; None if it is outside of the operation's domain."""
    if scenario.is_given:
        return Point(flatten(scenario.problem), random)
    try:
        point = Point(flatten(scenario.problem), random)
    except Exception:
        return None
    return point if np.any(np.isfinite(point.y)) else None


def _finding(
    session: Session, scenario: Scenario, point: Point, comparison: Comparison
) -> Finding:
    found = explain(point, comparison, session)
    return Finding(
        FIRST_ORDER,
        found.message,
        argument=comparison.part.name,
        output=found.output,
        elements=found.elements,
        scenario=scenario.name,
        error=comparison.gap / comparison.scale,
        noise=comparison.resolution,
        diagnosis=found.diagnosis,
        repair=found.repair,
    )


# --- NaN and infinity


def _not_finite(point: Point, scenario: str) -> Finding | None:
    """A finding if a gradient is not finite although the derivative is.

    At the edge of a domain both may be infinite (sqrt at 0): that is no mistake. NaN is
    one wherever the value is finite.
    """
    if not np.all(np.isfinite(point.y)):
        return None
    places = np.flatnonzero(point.not_finite)
    for i in places[:: max(1, len(places) // TRIED)][:TRIED]:
        part = point.flat.arguments.part_of(i)
        g = float(point.linearization.pull(np.ones(point.y.size))[i])
        slope = _slope(point, i)
        if np.isfinite(g) or (slope is None and not np.isnan(g)):
            continue
        known = "" if slope is None else f", and so is its derivative, {slope}"
        where = f"{part.name}{list(part.index(i))}" if part.shape else part.name
        return Finding(
            "not finite",
            f"the gradient is {g} at {where} = {point.x[i]:.6g}, where the value is "
            f"finite{known}",
            argument=part.name,
            scenario=scenario,
            elements=f"at {part.name} = {point.x[i]:.6g}",
            diagnosis="not finite",
            repair="write the rule such that nothing in it overflows or divides by "
            "zero there; a masked branch needs a safe argument too (gnp.where twice)",
        )
    return None


def _slope(point: Point, i: int) -> str | None:
    """The derivative of the sum of the outputs by one element, if it is a number."""
    v = np.zeros(point.x.size)
    v[i] = point.scale[i]
    found = point.slope(v)
    if not np.all(point.settled(found)):
        return None
    low, high = np.sum(found.low) / v[i], np.sum(found.high) / v[i]
    return f"{low:.4g}" if low == high else f"anything from {low:.4g} to {high:.4g}"
