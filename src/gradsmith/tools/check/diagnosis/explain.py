"""The order in which the usual mistakes are tried, from special to general."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..comparison import Comparison
from ..grade import is_minor
from ..native import reason
from ..numerics import norm
from ..point import Point
from ..session import Session
from .arrangement import conjugated, shifted, swapped, transposed
from .axes import missing_sum, wrong_axis, wrong_axis_inside
from .case import Case
from .evidence import Evidence
from .jacobian import jacobian_blocks
from .large import Diagnose, diagnose_large
from .locate import describe_elements
from .model import Diagnosis
from .regions import name_region, region, wrong_at_kink
from .simple import (
    clamp,
    factor,
    identity,
    jumps,
    lower_precision,
    not_deterministic,
    not_finite,
    not_zero,
    sign,
    stopped,
    zero,
)
from .terms import missing_term, unused_output

LARGE = 2.0**20
MANY = 64
SMALL = 1e-4  # a relative error below this needs sharper differences


@dataclass(frozen=True)
class Explanation:
    """Where a gradient is wrong, what the mistake is, and what to do."""

    elements: str | None
    diagnosis: str | None
    message: str
    repair: str | None
    error: float  # relative, of the worst element
    output: str | None = None


def explain(point: Point, comparison: Comparison, session: Session) -> Explanation:
    """Explain a comparison that came out wrong; a small error needs no explanation."""
    error, name = _relative_error(comparison), comparison.part.name
    random = session.random(f"diagnosis of {name}")
    case = Case(point, comparison.part, random, sharp=bool(error < SMALL))
    try:
        worst = _worst_error(case, comparison, session.random(f"worst of {name}"))
        solved = session.solved_to(comparison.resolution)
        if is_minor(worst, session.problem.dtypes, solved):
            return Explanation(None, None, facts(comparison), None, worst)
        elements, found = _diagnosed(case)
        output = _output(case)
    except Exception as problem:  # most likely the operation's, at another point
        why = f"{facts(comparison)}; nearby it raises: {reason(problem)}"
        return Explanation(None, None, why, None, error)
    if found is None:
        return Explanation(elements, None, facts(comparison), None, worst, output)
    return Explanation(elements, found.name, found.message, found.repair, worst, output)


def _worst_error(
    case: Case, comparison: Comparison, random: np.random.Generator
) -> float:
    """The relative error of the worst element.

    Where it is not known, it is the error of the whole; of many elements more, since
    all of it may be of one of them.
    """
    few = np.sqrt(case.part.size) / MANY
    most = float(comparison.gap / comparison.scale * max(1.0, few))
    if not case.is_small:
        return min(most, _beside_value(case.point, comparison))
    found = case.evidence
    u = found.upstream(random)
    with np.errstate(all="ignore"):
        off = np.abs(found.rule(u) - found.expected(u))
        off = np.where(off <= found.tolerance(u), 0.0, off)
        worst = _most(off / (np.abs(u) @ np.abs(found.truth)))
        return min(worst, _error_of_value(found, u, off)) or most


def _beside_value(point: Point, compared: Comparison) -> float:
    """The error beside the value, if the slope is zero as far as can be seen."""
    if max(abs(compared.low), abs(compared.high)) > compared.error:
        return np.inf
    value = norm(np.where(compared.u != 0, point.y, 0.0) * compared.u)
    return compared.gap / value if value else np.inf


def _error_of_value(found: Evidence, u: np.ndarray, off: np.ndarray) -> float:
    """The error of the elements beside the value of the outputs that they change.

    In the tail of a distribution the slope may be less than the value, by its dtype or
    as a series, has digits for. Beside the whole gradient it has to be nothing, too;
    where the slope is exactly zero (one weight of a softmax), that is all to ask.
    """
    x, y = found.point.scale[found.columns], np.abs(u * found.point.y[found.rows])
    whole = np.float64(norm(found.expected(u) * x) or norm(y))
    least = np.min(np.where(found.truth, y[:, None], np.inf), axis=0, initial=np.inf)
    least = np.where(np.isfinite(least), least, whole)
    off = off * x
    return max(_most(np.where(off, off / least, 0.0)), _most(norm(off) / whole))


def _most(error: np.ndarray | float) -> float:
    return float(np.max(np.where(np.isnan(error), np.inf, error), initial=0.0))


def _diagnosed(case: Case) -> tuple[str | None, Diagnosis | None]:
    """The elements that are wrong, in words, and the mistake."""
    early = not_finite(case) or not_deterministic(case)
    if not case.is_small:
        return (None, early) if early else diagnose_large(case, diagnose)
    states = case.evidence.states(case.random)
    elements = describe_elements(case.part, states > 0) if len(states) else None
    return elements, early or diagnose(case)


FIRST: tuple[Diagnose, ...] = (not_zero, identity, clamp, sign, factor)
THEN: tuple[Diagnose, ...] = (
    swapped,
    missing_sum,
    unused_output,
    transposed,
    shifted,
    conjugated,
    wrong_axis,
)
LAST: tuple[Diagnose, ...] = (missing_term, wrong_axis_inside, jumps)


def diagnose(case: Case) -> Diagnosis | None:
    """The mistake with the simplest explanation that was verified."""
    if not len(case.evidence.rows):
        return jumps(case)
    with np.errstate(all="ignore"):
        special = wrong_at_kink(case)
        if special is not None:
            return special
        if nothing := zero(case):
            return stopped(case) or nothing
        if not _is_linear(case.evidence, case.random):
            return lower_precision(case)  # what else is not linear was found before
        every = (*FIRST, lower_precision, *THEN, _regional, *LAST)
        return next(filter(None, (mistake(case) for mistake in every)), None)


def _is_linear(found: Evidence, random: np.random.Generator) -> bool:
    """Whether the rule's gradient is linear in the upstream one."""
    u, w = found.upstream(random), found.upstream(random)
    parts = (found.rule(u), found.rule(w), found.rule(LARGE * (u - w)) / LARGE)
    size = max(float(np.max(np.abs(g), initial=0.0)) for g in parts)
    gaps = np.array([parts[0] - parts[1] - parts[2], parts[0] + found.rule(-u)])
    if size <= 1e-10 * np.max(np.abs(found.expected(u)), initial=0.0):
        return False  # rounding is all there is
    return float(np.max(np.abs(gaps))) <= 2.0**20 * found.point.flat.eps * size


def _regional(case: Case) -> Diagnosis | None:
    """A region, with what is wrong inside of it."""
    found = region(case)
    return None if found is None else name_region(case, found)


def _relative_error(comparison: Comparison) -> float:
    return comparison.gap / comparison.scale if comparison.scale else np.inf


def facts(comparison: Comparison) -> str:
    """By how much the gradient differs from the differences."""
    error = _relative_error(comparison)
    return (
        f"the gradient is not the derivative: along a random direction it gives "
        f"{comparison.rule:.6g}, the differences {comparison.low:.6g}"
        + (f" to {comparison.high:.6g}" if comparison.high != comparison.low else "")
        + f" (relative error {error:.1e}, noise {comparison.resolution:.0e})"
    )


def _output(case: Case) -> str | None:
    """The output whose upstream gradient is used wrongly, if it is one of several."""
    if len(case.point.linearization.outputs.parts) < 2 or not case.is_small:
        return None
    every = jacobian_blocks(replace(case).evidence)
    wrong = [s.output.name for s in every if s.is_wrong]
    return wrong[0] if len(wrong) == 1 else None
