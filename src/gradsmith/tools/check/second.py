"""Second order: is the derivative of the rule the derivative of what it computes?

With u fixed, x -> pull_x(u) is a function like any other, and differentiating the rule
is its gradient. So it is looked at as in first order, with differences of gradients;
and by the upstream gradient, in which it is linear: no differences there,

    d/du <pull(u), v>  along w  =  <pull(w), v>
"""

from __future__ import annotations

import numpy as np

from .comparison import Test
from .first import Ground
from .flat import flat
from .model import Finding, Verdict
from .native import jittered, reason, signed
from .problem import Problem
from .session import Session
from .twice import Rule, upstream_like

WHAT = "second order"
ROUNDINGS = 64.0
STEPS = (0.125, 0.09375, 0.0625)  # a fresh step for each time that it is tried again


# What is wrong in first order is wrong in second, and says nothing new.
_CAUSES = ("first order", "linearity", "purity", "determinism", "contract", "precision")


def look(session: Session, problem: Problem, scenario: str = "given") -> None:
    """By the arguments, then by the upstream gradient; nothing if it is refused."""
    if problem.info.surrogate is not None or not problem.info.linear:
        return
    if session.has_found(*_CAUSES):
        return
    random = session.random(f"second {scenario}")
    rule = Rule.at(flat(problem), random)
    if not (rule.x.size and rule.us):
        return
    try:
        ground = Ground(rule, random)  # type: ignore[arg-type]
        if not np.all(np.isfinite(ground.y)):
            return
        tests = list(ground.tests())
        gap = _gap_by_upstream(rule, random)
    except Exception as error:
        session.note(f"no second order: {reason(error)}")
        return
    wrong = _wrong_arguments(ground, tests)
    for test in wrong:
        session.found(_wrong_by_argument(test, scenario))
    if gap is not None and _gap_by_upstream(rule, random) is not None:
        session.found(_wrong_by_upstream(gap, scenario))
    elif not wrong:
        seen = [test.resolution for test in tests if test.says_something]
        verdict = Verdict.RIGHT if seen else Verdict.INCONCLUSIVE
        session.looked(WHAT, scenario, verdict, max(seen, default=None))


# --- by the arguments


def _wrong_arguments(ground: Ground, tests: list[Test]) -> list[Test]:
    """One comparison for each argument whose derivative is wrong for sure."""
    wrong: dict[str, Test] = {}
    for test in tests:
        name = test.part.name
        if name not in wrong and test.is_wrong and _again(ground, test):
            wrong[name] = test
    return list(wrong.values())


def _again(ground: Ground, test: Test) -> bool:
    """Whether it is wrong with fresh directions, weights and steps as well."""
    return all(
        any(new.is_wrong for new in ground.along(test.part, test.v != 0, step))
        for step in STEPS
    )


def _wrong_by_argument(test: Test, scenario: str) -> Finding:
    """A rule that is right in first order is wrong in second only if it is detached.

    Its values are right everywhere, so its derivative is, unless the framework takes
    something for a constant that changes with the arguments.
    """
    words = "the derivative of the rule is not that of the gradient it computes"
    if test.rule == 0:
        words = "the derivative of the rule is zero, and the gradient does change"
    return Finding(
        WHAT,
        f"{words}: what it was computed from counts as a constant",
        argument=test.part.name,
        scenario=scenario,
        error=test.gap / test.scale if np.isfinite(test.gap) else np.inf,
        noise=test.resolution,
        diagnosis="detached second order",
        repair="compute the gradient from the arguments (and what the framework saved "
        "for you), with its own operations and without detaching; or say that it has "
        "no second order",
    )


# --- by the upstream gradient


def _gap_by_upstream(rule: Rule, random: np.random.Generator) -> float | None:
    """How far off it is, relative; None if rounding explains it."""
    problem = rule.inner.problem
    v = signed(random, rule.x.shape)
    ws = [upstream_like(random, u) for u in rule.us]
    tangents = rule.derived(rule.x, v)[1]
    gradients = problem.linear(rule.arguments.arrays(rule.x)).pull(ws)
    one, two = _terms(tangents, ws), _terms(gradients, rule.arguments.arrays(v))
    size = float(np.sqrt(np.sum(one * one) + np.sum(two * two)))
    gap = abs(float(np.sum(one) - np.sum(two)))
    if gap <= ROUNDINGS * rule.eps * size:
        return None
    xs = jittered(random, rule.arguments.arrays(rule.x), rule.eps)
    # At another scale is rounded in another way what a rule adds and takes away again.
    k = 1 + rule.eps**0.5
    moved = problem.linear(xs).pull([k * w for w in ws])
    moved = _terms(moved, rule.arguments.arrays(v)) / k - two
    noise = ROUNDINGS * float(np.sum(np.abs(moved)))
    return None if gap <= noise else gap / (size or 1.0)


def _terms(a: list, b: list) -> np.ndarray:
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None]
    return np.concatenate([np.ravel(np.real(np.conj(x) * y)) for x, y in pairs] or [[]])


def _wrong_by_upstream(gap: float, scenario: str) -> Finding:
    return Finding(
        WHAT,
        "the derivative of the rule by the upstream gradient is wrong: dy counts as a "
        "constant in it, or a part of it does",
        scenario=scenario,
        error=gap,
        diagnosis="detached second order",
        repair="use dy as it is given, with the framework's own operations and without "
        "detaching; or say that there is no second order",
    )
