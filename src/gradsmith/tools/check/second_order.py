"""Second order: is the derivative of the rule the derivative of what it computes?

With u fixed, x -> pull_x(u) is a function like any other, and differentiating the rule
is its gradient. So it is checked as in first order, with differences of gradients;
and by the upstream gradient, in which it is linear, without differences:

    d/du <pull(u), v>  along w  =  <pull(w), v>
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .comparison import Comparison
from .first_order import not_finite
from .flat import FlatLinearization, FlatProblem, VectorLayout, flatten
from .model import Finding, Verdict
from .native import reason
from .numerics import jittered, random_signed
from .point import Point
from .problem import Arrays, Problem
from .session import Session

SECOND_ORDER = "second order"
ROUNDINGS = 64.0
SOLVED = 1e-3  # the derivative of what stops at some accuracy
STEPS = (0.125, 0.09375, 0.0625)  # another step each time it is tried again

# What is wrong in first order is wrong in second, and says nothing new.
_CAUSES = ("first order", "linearity", "purity", "determinism", "contract", "precision")


def check_second_order(session: Session, problem: Problem, scenario: str) -> None:
    """By the arguments, then by the upstream gradient; a note if it is refused."""
    if problem.info.surrogate is not None or not problem.info.linear:
        return
    if session.has_found(*_CAUSES) or problem.declares:
        return
    random = session.random(f"second {scenario}")
    rule = RuleAsFunction.at(flatten(problem), random)
    if not (rule.x.size and rule.us):
        return
    try:
        point = Point(rule, random)  # type: ignore[arg-type]
        if not np.all(np.isfinite(point.y)):
            return
        compared = list(point.comparisons(jointly=True))
        gap = _gap_by_upstream(rule, random)
    except Exception as error:
        words = f"there is none: {reason(error)}"
        session.limit(Finding(SECOND_ORDER, words, refused=True))
        return
    least = SOLVED if session.solves else 0.0
    wrong = _wrong_arguments(point, compared, least)
    for finding, _ in not_finite(point, scenario, "the derivative of the rule"):
        session.limit(replace(finding, what=SECOND_ORDER))
    for comparison in wrong:
        session.limit(_wrong_by_argument(comparison, scenario))
    again = None if gap is None else _gap_by_upstream(rule, random)
    if gap is not None and again is not None and min(gap, again) > least:
        session.limit(_wrong_by_upstream(gap, scenario))
    elif not wrong:
        seen = [each.resolution for each in compared if each.says_something]
        verdict = Verdict.RIGHT if seen else Verdict.UNKNOWN
        session.record(SECOND_ORDER, scenario, verdict, max(seen, default=None))


@dataclass(frozen=True)
class RuleAsFunction:
    """x -> pull_x(u) in vectors, with the derivative of the rule as its gradient."""

    inner: FlatProblem
    us: Arrays
    dys: list[Any]  # u as the framework's arrays

    @classmethod
    def at(cls, f: FlatProblem, random: np.random.Generator) -> RuleAsFunction:
        problem = f.problem
        with problem.precision():
            xs = problem.to_native(f.arguments.arrays(f.x))
            ys = problem.calculus.value(problem.native, xs)
            us = [_random_like(random, problem.arrays.numpy(y)) for y in ys]
            return cls(f, us, problem.upstream_like(ys, us))

    def about(self, x: np.ndarray) -> RuleAsFunction:
        return self

    def value(self, x: np.ndarray) -> np.ndarray:
        problem = self.inner.problem
        with problem.precision():
            pull = problem.calculus.vjp(problem.native, self._native(x))[1]
            gradients = [problem.to_numpy(g) for g in pull(self.dys)]
            return self.arguments.vector(gradients)

    def linearize(self, x: np.ndarray) -> FlatLinearization:
        y = self.value(x)
        return FlatLinearization(y, lambda v: self.pull(x, v)[0], self.arguments)

    def pull(self, x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, list]:
        """The gradient of <pull_x(u), v>: by x as a vector, and by each u."""
        problem = self.inner.problem
        with problem.precision():
            xs, vs = self._native(x), self._native(v)
            by_x, by_u = problem.calculus.second(problem.native, xs, self.dys, vs)
            by_x, by_u = ([problem.to_numpy(g) for g in each] for each in (by_x, by_u))
            return self.arguments.vector(by_x), by_u

    def _native(self, x: np.ndarray) -> list[Any]:
        return self.inner.problem.to_native(self.arguments.arrays(x))

    @property
    def arguments(self) -> VectorLayout:
        return self.inner.arguments

    @property
    def x(self) -> np.ndarray:
        return self.inner.x

    @property
    def symmetric(self) -> frozenset[str]:
        return self.inner.symmetric

    @property
    def eps(self) -> float:
        return self.inner.eps


def _random_like(random: np.random.Generator, y: np.ndarray) -> np.ndarray:
    u = random_signed(random, y.shape)
    return u + 1j * random_signed(random, y.shape) if np.iscomplexobj(y) else u


# --- by the arguments


def _wrong_arguments(
    point: Point, compared: list[Comparison], least: float
) -> list[Comparison]:
    """One comparison for each argument whose derivative is wrong for sure.

    A relative error of less than `least` is nothing.
    """
    wrong: dict[str, Comparison] = {}
    for comparison in compared:
        name = comparison.part.name
        if comparison.gap < least * comparison.scale or name in wrong:
            continue
        if comparison.is_wrong and _again(point, comparison):
            wrong[name] = comparison
    return list(wrong.values())


def _again(point: Point, comparison: Comparison) -> bool:
    """Whether it is wrong with fresh directions, weights and steps as well."""
    part, chosen = comparison.part, comparison.v != 0
    return all(
        any(new.is_wrong for new in point.along(part, chosen, step)) for step in STEPS
    )


def _wrong_by_argument(comparison: Comparison, scenario: str) -> Finding:
    """A rule that is right in first order is wrong in second only if it is detached.

    Its values are right everywhere, so its derivative is, unless the framework treats
    something as a constant that changes with the arguments.
    """
    gap = comparison.gap
    words = "the derivative of the rule is not that of the gradient it computes"
    if comparison.rule == 0:
        words = "the derivative of the rule is zero, and the gradient does change"
    return Finding(
        SECOND_ORDER,
        f"{words}: something that it was computed from is treated as a constant",
        argument=comparison.part.name,
        scenario=scenario,
        error=gap / comparison.scale if np.isfinite(gap) else np.inf,
        noise=comparison.resolution,
        diagnosis="detached second order",
        repair="compute the gradient from the arguments (and what the framework saved "
        "for you), with its own operations and without detaching; or declare that it "
        "has no second order",
    )


# --- by the upstream gradient


def _gap_by_upstream(rule: RuleAsFunction, random: np.random.Generator) -> float | None:
    """How far off it is, relative; None if rounding explains it."""
    problem = rule.inner.problem
    v = random_signed(random, rule.x.shape)
    ws = [_random_like(random, u) for u in rule.us]
    tangents = rule.pull(rule.x, v)[1]
    gradients = problem.linearize(rule.arguments.arrays(rule.x)).pull(ws)
    one, two = _terms(tangents, ws), _terms(gradients, rule.arguments.arrays(v))
    size = float(np.sqrt(np.sum(one * one) + np.sum(two * two)))
    gap = abs(float(np.sum(one) - np.sum(two)))
    if gap <= ROUNDINGS * rule.eps * size:
        return None
    xs = jittered(random, rule.arguments.arrays(rule.x), rule.eps)
    # At another scale, terms that cancel in a rule are rounded differently.
    k = 1 + rule.eps**0.5
    moved = problem.linearize(xs).pull([k * w for w in ws])
    moved = _terms(moved, rule.arguments.arrays(v)) / k - two
    noise = ROUNDINGS * float(np.sum(np.abs(moved)))
    return None if gap <= noise else gap / (size or 1.0)


def _terms(a: list, b: list) -> np.ndarray:
    pairs = [(x, y) for x, y in zip(a, b, strict=True) if x is not None]
    return np.concatenate([np.ravel(np.real(np.conj(x) * y)) for x, y in pairs] or [[]])


def _wrong_by_upstream(gap: float, scenario: str) -> Finding:
    return Finding(
        SECOND_ORDER,
        "the derivative of the rule by the upstream gradient is wrong: dy is treated "
        "as a constant, or a part of it is",
        scenario=scenario,
        error=gap,
        diagnosis="detached second order",
        repair="use dy as it is given, with the framework's own operations and without "
        "detaching; or declare that there is no second order",
    )
