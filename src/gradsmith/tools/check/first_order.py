"""First order: the rule against differences, on the inputs of one scenario."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from .budget import OutOfTimeError
from .comparison import Comparison
from .confirm import confirmed
from .diagnosis import explain, facts
from .flat import EPS, Part, flatten
from .grade import RECTIFIED, digits, is_minor, is_surrogate
from .model import Finding, Verdict
from .point import Point
from .purpose import (
    given_for_rule,
    grows_smoothly,
    is_right_on_average,
    stated,
    steps_along,
    stopped,
)
from .reproducer import reproducer
from .scenarios import Scenario
from .session import Session
from .structure import Structure, structure_of

FIRST_ORDER = "first order"
TRIED = 3
DECLARE = "say that it is on purpose"
APPROXIMATION = 1e-6
ASIDE = 2.0**-7
SMOOTH = (
    "the value is an approximation: the error grows smoothly with the arguments, from "
    "none at the scale of the given inputs"
)
TWICE = (
    "wrong if indices name a place twice, where one of the elements that are written "
    "there replaces the others"
)
WRITTEN = 16  # elements that are tried
WITHIN = 1e-6  # the relative error of directions that are rounded
MATRIX = 2  # axes; a matrix may be transposed, which shows beside its structure alone


def check_first_order(session: Session, scenario: Scenario) -> None:
    """Compare the rule with differences on the inputs of one scenario."""
    if scenario.reversed is not None:
        scenario = _of_reversed(session, scenario)
    session.at = problem = scenario.problem
    point = _point(scenario, session.random(scenario.name))
    if point is None:
        return
    seen: dict[str, float] = {}  # by the sharpest comparison of each argument
    most = 0.0

    def done(name: str) -> bool:
        if scenario.is_far and name in [f.argument for f in session.limits]:
            return True
        return session.is_wrong(name)

    for comparison in point.comparisons(
        even=scenario.even, jointly=not scenario.is_given, done=done
    ):
        name = comparison.part.name
        telling = comparison.is_wrong and comparison.says_something
        slopes = comparison.slope.size
        most = max(most, np.max(slopes[np.isfinite(slopes)], initial=0.0))
        minor = _minor(session, scenario, comparison, most) if telling else None
        if minor is not None:
            seen[name] = minor.error or 0.0
            if seen[name] > EPS["float64"]:  # the rest is rounding
                session.limit(minor)
            continue
        if telling and confirmed(point, comparison) and scenario.is_inside:
            error = _report_wrong(session, scenario, point, comparison)
            session.in_no_time = None
            if error is not None:
                seen[name] = error
        elif comparison.says_something:
            seen[name] = min(comparison.resolution, seen.get(name, np.inf))
    for finding, is_isolated in not_finite(point, scenario.name):
        if not session.is_wrong(finding.argument):
            limited = is_isolated or scenario.is_far or scenario.is_single
            (session.limit if limited else session.found)(finding)
    if seen:
        least = max(seen.values())
        session.record(FIRST_ORDER, scenario.name, Verdict.RIGHT, least)
    elif scenario.is_given and not session.findings and problem.traits.rejects:
        session.found(_sample(Finding(FIRST_ORDER, "", scenario=scenario.name)))
    elif scenario.is_given and not session.findings:
        session.give_up("the differences do not settle at the given inputs: try others")


def _of_reversed(session: Session, scenario: Scenario) -> Scenario:
    """The scenario for the argument that has not the given sign, without the others.

    If the rule of another argument is wrong there, it may not have that sign.
    """
    problem, name = scenario.problem, scenario.reversed or ""
    before = len(session.checks)
    others = replace(scenario, problem=problem.freezing({name}), is_far=True)
    check_first_order(session, replace(others, reversed=None))
    if Verdict.LIMITED in [check.verdict for check in session.checks[before:]]:
        session.signed.add(name)  # a limit is told once, of all such scenarios
    far = scenario.is_far or name in session.signed
    alone = problem.freezing(set(problem.perturbed) - {name})
    return replace(scenario, problem=alone, reversed=None, is_far=far)


def _point(scenario: Scenario, random: np.random.Generator) -> Point | None:
    """The point of a scenario; None if it is outside of the operation's domain."""
    if scenario.is_given:
        return Point(flatten(scenario.problem), random)
    try:
        point = Point(flatten(scenario.problem), random)
    except Exception:
        return None
    return point if np.any(np.isfinite(point.y)) else None


def _minor(
    session: Session, scenario: Scenario, comparison: Comparison, most: float
) -> Finding | None:
    """A limit, if the error of a solver is small beside `most`, the largest slope.

    What a solver leaves of zero is not more accurate than the rest.
    """
    if not session.solves:
        return None
    most *= np.max(np.abs(comparison.u))
    error = float(comparison.gap / max(comparison.scale, most))
    if scenario.is_given:  # whichever element has all of it
        error *= np.sqrt(comparison.v.size)
    if not _is_minor(session, error, comparison):
        return None
    return Finding(
        FIRST_ORDER,
        _agrees(error),
        argument=comparison.part.name,
        scenario=scenario.name,
        error=error,
        noise=comparison.resolution,
    )


def _is_minor(session: Session, error: float, comparison: Comparison) -> bool:
    solved = session.solved_to(comparison.resolution)
    return is_minor(error, session.problem.dtypes, solved)


def _agrees(error: float) -> str:
    return f"agrees to {digits(error)}, fewer than rounding leaves"


def _report_wrong(
    session: Session, scenario: Scenario, point: Point, comparison: Comparison
) -> float | None:
    """A finding; a limit if the error is small, or far from the given inputs.

    Of a small error it is the size that is returned.
    """
    problem = scenario.problem
    finding = Finding(
        FIRST_ORDER,
        "",
        argument=comparison.part.name,
        scenario=scenario.name,
        error=comparison.gap / comparison.scale,
        noise=comparison.resolution,
    )
    session.in_no_time = partial(_disagrees, session, finding)
    if scenario.repeats and _is_overwritten(point, comparison):
        session.limit(replace(finding, message=TWICE))
        return None
    structure = structure_of(comparison.part.array(point.x))
    within = _right_within(point, comparison.part, structure)
    if within and structure and structure.axes < MATRIX:
        session.limit(replace(finding, message=within))
        return comparison.resolution
    # Elsewhere a value that saturates, or has no full rank, looks like one with steps.
    if scenario.is_given and (stepped := steps_along(point, comparison.part)):
        session.found(_step(finding, *stepped))
        return None
    if within:
        limit = replace(finding, message=within)
        session.in_no_time = partial(session.limit, limit)
    elif scenario.is_given and not _may_be_less(session, scenario, comparison):
        session.in_no_time = partial(_wrong, session, finding, comparison)
    found = point.flat.problem.budget.run_aside(  # other inputs may take for ever
        lambda: explain(point, comparison, session)
    )
    finding = replace(
        finding,
        message=found.message,
        output=found.output,
        elements=found.elements,
        diagnosis=found.diagnosis,
        repair=found.repair,
    )
    # Beside the given inputs so small an error is one of a series or a quadrature.
    elsewhere = not scenario.is_given and found.error < APPROXIMATION
    if elsewhere or _is_minor(session, found.error, comparison):
        words = _agrees(found.error)
        session.limit(replace(finding, message=words, diagnosis=None, repair=None))
        return found.error
    if scenario.is_far:
        session.limit(finding)
        return None
    if within and found.diagnosis is None:
        session.limit(replace(finding, message=within))
        return comparison.resolution
    if found.diagnosis is None:
        again = any(each.message == SMOOTH for each in session.limits)
        if not scenario.is_given and grows_smoothly(point, comparison, again=again):
            session.limit(replace(finding, message=SMOOTH))
            return None
        finding = _on_purpose(session, point, finding)
    if not is_surrogate(finding) and (how := stopped(problem, session.random("stops"))):
        words = f"{finding.message}\nits code stops gradients: {how}"
        finding = replace(finding, message=words, diagnosis="stated", repair=DECLARE)
    rectified = any(f.diagnosis == RECTIFIED for f in session.findings)
    if finding.diagnosis == "clamp" and rectified:
        finding = replace(finding, diagnosis=None)  # dy was masked in place of x
    script = None
    if not is_surrogate(finding):
        with suppress(OutOfTimeError):
            script = reproducer(problem, finding.argument)
    session.found(replace(finding, reproducer=script))
    return None


# --- in no time left for an explanation

NO_TIME = "not explained: no time was left"


def _may_be_less(session: Session, scenario: Scenario, comparison: Comparison) -> bool:
    """Whether an explanation could make a limit or a surrogate of a wrong gradient."""
    problem = scenario.problem
    flat = comparison.low == comparison.high == 0  # such as rounding
    minor = _is_minor(session, comparison.gap / comparison.scale, comparison)
    return bool(flat or minor or problem.traits.rejects or stated(problem.info))


def _disagrees(session: Session, finding: Finding) -> None:
    session.give_up(
        f"the gradient of {finding.argument} disagrees with differences, with "
        f"{finding.scenario}; {NO_TIME}"
    )


def _wrong(session: Session, finding: Finding, comparison: Comparison) -> None:
    more = "for an explanation, give it more time: gs.check.options(seconds=...)"
    words = f"{facts(comparison)}; {NO_TIME}"
    session.found(replace(finding, message=words, repair=more))


# --- right in some sense, or on purpose


def _is_overwritten(point: Point, comparison: Comparison) -> bool:
    """Whether elements have a gradient and no influence: others are written over them.

    A rule that forgets to add up, where indices repeat, loses gradients instead.
    """
    g = point.linearization.pull(comparison.u)
    elements = np.flatnonzero((comparison.v != 0) & (g != 0))
    for i in point.random.permutation(elements)[:WRITTEN]:
        x = point.x.copy()
        x[i] += point.scale[i]
        if np.array_equal(point.value(x), point.y, equal_nan=True):
            return True
    return False


def _right_within(point: Point, part: Part, structure: Structure | None) -> str | None:
    """Words for a gradient of what has a structure, if it is right as long as that is.

    The loss of log-probabilities may have the gradient by what they are made of, since
    everyone makes them so.
    """
    if structure is None or structure.tangent is None:
        return None
    # A direction that leaves the domain says nothing, unless all of them do.
    tried = [[*point.within(part, structure.tangent)] for _ in range(TRIED)]
    found = [each for some in tried for each in some if each.says_something]
    wrong = [each.is_wrong and each.gap > WITHIN * each.scale for each in found]
    if not found or any(wrong):
        return None
    kept = f"stays {structure.name}"
    if structure.axes < MATRIX:
        kept = f"keeps to {structure.name}, along its last axis"
    return (
        f"right along all directions in which {part.name} {kept}; not the derivative "
        "by each element alone"
    )


def _on_purpose(session: Session, point: Point, finding: Finding) -> Finding:
    """The finding, with what speaks for a gradient that is meant to be another one."""
    problem, names = point.flat.problem, (finding.argument or "").split(" and ")
    if problem.traits.rejects:
        return _sample(finding)
    random = session.random(f"draws {finding.scenario}")
    if is_right_on_average(problem, names, random):
        words = (
            "it is right on average over what is drawn, and not the derivative of one "
            "draw: an implicit gradient, as of samples that may be rejected"
        )
        return replace(
            finding, message=words, diagnosis="right on average", repair=DECLARE
        )
    if other := given_for_rule(problem, names, random):
        words = f"the value does not depend on {other}, and this gradient does"
        return replace(finding, message=words, diagnosis="for the rule", repair=DECLARE)
    said = stated(problem.info)
    if said is None:
        return finding
    words = f"{finding.message}\nits code calls it {said!r}: not the derivative"
    return replace(finding, message=words, diagnosis="stated", repair=DECLARE)


def _sample(finding: Finding) -> Finding:
    return replace(
        finding,
        message="random numbers are drawn by rejection, and the gradient is not the "
        "derivative of those drawn: usual where it is that of their distribution",
        diagnosis="sample",
    )


def _step(finding: Finding, other: str, factor: float) -> Finding:
    times = "" if np.isclose(factor, 1) else f"{factor:.4g} times what would be "
    return replace(
        finding,
        message=f"the value has steps along {other}, and rounding counts as the "
        f"identity: the gradient of {finding.argument} is {times}right where both are "
        "scaled alike",
        diagnosis="steps",
        repair=DECLARE,
    )


# --- NaN and infinity


def not_finite(
    point: Point, scenario: str, what: str = "the gradient"
) -> Iterator[tuple[Finding, bool]]:
    """A finding if a gradient is not finite although the derivative is.

    And whether the point is an isolated one. At the edge of a domain both may be
    infinite (sqrt at 0): that is no mistake. NaN is one wherever the value is finite.
    """
    if not np.all(np.isfinite(point.y)):
        return
    places = np.flatnonzero(point.not_finite)
    for i in places[:: max(1, len(places) // TRIED)][:TRIED]:
        part = point.flat.arguments.part_of(i)
        g = float(point.linearization.pull(np.ones(point.y.size))[i])
        slope = _slope(point, i)
        if np.isfinite(g) or (slope is None and not np.isnan(g)):
            continue
        known = "" if slope is None else f", and so is its derivative, {slope}"
        where = f"{part.name}{list(part.index(i))}" if part.shape else part.name
        others = _beside(point, part, i)
        finding = Finding(
            "not finite",
            f"{what} is {g} at {where} = {point.x[i]:.6g}{others}, where the value "
            f"is finite{known}",
            argument=part.name,
            scenario=scenario,
            elements=f"at {part.name} = {point.x[i]:.6g}",
            diagnosis="not finite",
            repair="write the rule such that nothing in it overflows or divides by "
            "zero there; a masked branch needs a safe argument too (gnp.where twice)",
        )
        yield finding, _is_isolated(point, i)
        return


def _beside(point: Point, part: Part, i: int) -> str:
    """The elements of other arguments at the same place, in words."""
    same = [
        p for p in point.flat.arguments.parts if p != part and p.shape == part.shape
    ]
    places = [p.start + i - part.start for p in same]
    return "".join(
        f", {p.name} = {point.x[k]:.6g}" for p, k in zip(same, places, strict=True)
    )


def _is_isolated(point: Point, i: int) -> bool:
    """Whether the gradient by an element is finite on both sides of the point."""
    for side in (-ASIDE, ASIDE):
        x = point.x.copy()
        x[i] += side * point.scale[i]
        with np.errstate(all="ignore"):
            found = point.flat.linearize(x)
            if not np.isfinite(found.pull(np.ones(found.y.size))[i]):
                return False
    return True


def _slope(point: Point, i: int) -> str | None:
    """The derivative of the sum of the outputs by one element, if it is a number."""
    v = np.zeros(point.x.size)
    v[i] = point.scale[i]
    found = point.slope(v)
    if not np.all(point.settled(found)):
        return None
    low, high = np.sum(found.low) / v[i], np.sum(found.high) / v[i]
    return f"{low:.4g}" if low == high else f"anything from {low:.4g} to {high:.4g}"
