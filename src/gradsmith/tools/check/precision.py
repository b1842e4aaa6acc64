"""Does the rule give in float32, bfloat16 and float16 what it gives in float64?

At the same inputs, which are exact in both, and only roughly: how many digits it loses
is not the question here. A gradient that is NaN or infinite though the value is finite,
or that has lost all of its digits, is wrong; so is one in float64 that was computed in
less than that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core.arrays import NUMPY
from ...report.figures import percent
from .flat import EPS, VectorLayout, vector_layout
from .model import Finding, Verdict
from .native import reason
from .numerics import (
    LARGEST,
    TINY,
    jittered,
    largest,
    norm,
    precision_of,
    random_signed,
    rounded,
)
from .problem import Arrays, Problem
from .session import Session

PRECISION = "precision"
DTYPES = ("float32", "bfloat16", "float16")
LARGE = (20.0, 90.0, 200.0, 1e4)  # exp overflows in float32 beyond 88.7
SQUARED = 2.0**66  # its square overflows
ROUNDINGS = 64.0
LOST = 0.5  # relative, in the norm
SAME = 1e-9
CANCELLED = 2.0**-44  # of the largest: what rounding leaves of zero has few digits
SMALL = 1e-3  # of the largest value: what cancels may have lost its digits


def check_precision(session: Session, problem: Problem, scenario: str) -> None:
    """Each dtype at the inputs given, and float32 at large and small ones too."""
    if problem.is_random:
        return  # in each dtype other numbers are drawn
    if problem.fixed_dtypes or any(
        name.startswith("complex") for name in problem.dtypes
    ):
        return
    exact = problem.in_dtype("float64")
    if exact.dtypes != problem.dtypes:
        return  # it does not take float64: there is nothing to compare with
    random = session.random(f"precision {scenario}")
    rule = RuleByDtype(exact, random)
    _check_digits(session, rule, scenario)
    for dtype in DTYPES:
        few = session.solves or session.is_costly
        if few and dtype not in session.problem.dtypes:
            continue  # a tolerance that it can't reach, or seconds to compile it
        if dtype == "bfloat16" and problem.framework.name == NUMPY:
            continue  # NumPy has none
        if not _takes(exact, dtype):
            continue
        try:
            finding = _at(rule, exact.xs, dtype, scenario)
            is_wrong = finding is not None and dtype in session.problem.dtypes
            if finding is None and dtype == "float32":
                finding = _at_others(rule, dtype, scenario)
        except Exception as error:
            words = f"it raises: {reason(error)}"
            session.limit(Finding(dtype, words, refused=True))
            continue
        if finding is None:
            session.record(f"{PRECISION} {dtype}", scenario, Verdict.RIGHT, LOST)
            continue
        (session.found if is_wrong else session.limit)(finding)
        return  # the others would follow


def _takes(exact: Problem, dtype: str) -> bool:
    """Whether the operation itself takes a dtype."""
    try:
        exact.in_dtype(dtype).value(exact.xs)
    except Exception:
        return False
    return True


def _at(rule: RuleByDtype, xs: Arrays, dtype: str, scenario: str) -> Finding | None:
    pair = gradient_pair(rule, xs, dtype)
    if pair is None:
        return None
    if np.any(pair.overflows):
        return _overflow(pair, scenario)
    error = pair.lost()
    if error is None or not _lost_again(rule, xs, dtype):
        return None
    return _all_lost(pair, error, scenario)


def _at_others(rule: RuleByDtype, dtype: str, scenario: str) -> Finding | None:
    """The same inputs at other scales: large, small, of the other sign."""
    if rule.exact.traits.iterates:
        return None  # it may never end there
    values = rule.arguments.vector(rule.exact.xs)
    top = float(np.max(np.abs(values), initial=0.0))
    if not 0 < top < np.inf:
        return None
    scales = [large / top for large in LARGE if large > top] + [1e-4]
    if np.all(values >= 0) or np.all(values <= 0):
        scales += [-LARGE[1] / top]
    for scale in scales:
        xs = [x * scale for x in rule.exact.xs]
        pair = gradient_pair(rule, xs, dtype, finite=False)
        if pair is not None and np.any(pair.overflows):
            return _overflow(pair, scenario)
    if rule.is_of_first_degree:
        xs = [x * (SQUARED / top) for x in rule.exact.xs]
        return _at(rule, xs, dtype, scenario)
    return None


def _lost_again(rule: RuleByDtype, xs: Arrays, dtype: str) -> bool:
    """Whether it is so nearby as well, not only at a tie of rounded numbers."""
    for _ in range(2):
        near = [x * rule.random.uniform(0.9, 1.1, x.shape) for x in xs]
        pair = gradient_pair(rule, near, dtype)
        if pair is None or pair.lost() is None:
            return False
    return True


def _overflow(pair: GradientPair, scenario: str) -> Finding:
    i = int(np.argmax(pair.overflows))
    part = pair.rule.arguments.part_of(i)
    index, x = part.index(i), pair.rule.arguments.vector(pair.xs)[i]
    what = "NaN" if np.isnan(pair.g[i]) else "infinite"
    return Finding(
        PRECISION,
        f"in {pair.dtype} the gradient is {what} though the value is finite, at "
        f"{part.name} = {x:.4g}; in float64 it is {pair.g64[i]:.3g}: something in the "
        "rule overflows",
        argument=part.name,
        elements=f"{part.name}{list(index)}" if index else None,
        scenario=scenario,
        error=np.inf,
        repair="rearrange the rule so that no part of it overflows, or reuse the "
        "outputs, which are finite",
    )


def _all_lost(pair: GradientPair, error: float, scenario: str) -> Finding:
    top = max(float(np.max(np.abs(x), initial=0.0)) for x in pair.xs)
    return Finding(
        PRECISION,
        f"in {pair.dtype} no digit of the gradient is right: it differs by "
        f"{percent(error)} from that in float64 at the same inputs, of magnitudes "
        f"up to {top:.2g}",
        scenario=scenario,
        error=error,
        noise=LOST,
        repair="rearrange the terms that cancel, or compute them in float32 or float64",
    )


def _check_digits(session: Session, rule: RuleByDtype, scenario: str) -> None:
    """A float64 gradient with the digits of a float32, though the value has more."""
    random = rule.random
    xs = [x * random.uniform(0.99, 1.01, x.shape) for x in rule.exact.xs]
    us = [random.uniform(-1, 1, u.shape) for u in rule.us]
    try:
        ys, g = rule(xs, "float64", us)
    except Exception:
        return  # these are not the given inputs, and may be outside of its domain
    if all(precision_of(y, few=1) for y in ys):
        return
    for part in rule.arguments.parts:
        dtype = precision_of(part.array(g))
        if dtype is None or largest(part.array(g)) < CANCELLED * largest(g):
            continue
        is_wrong = "float64" in session.problem.dtypes
        (session.found if is_wrong else session.limit)(
            Finding(
                PRECISION,
                f"the gradient in float64 has only the digits of {dtype}",
                argument=part.name,
                scenario=scenario,
                error=EPS[dtype],
                diagnosis="precision lost",
                repair=f"don't cast to {dtype} or make arrays of it in the rule",
            )
        )


# --- the same rule in two dtypes


class RuleByDtype:
    """An operation and its rule in each dtype, for one upstream gradient."""

    def __init__(self, exact: Problem, random: np.random.Generator) -> None:
        self.exact, self.random = exact, random
        self.arguments: VectorLayout = vector_layout(exact.perturbed, exact.xs)
        self.us = [random_signed(random, y.shape) for y in exact.value(exact.xs)]

    def __call__(
        self, xs: Arrays, dtype: str, us: Arrays | None = None
    ) -> tuple[Arrays, np.ndarray]:
        """The outputs and the gradient."""
        found = self.exact.in_dtype(dtype).linearize(xs)
        dxs = found.pull(self.us if us is None else us)
        return found.ys, self.arguments.vector(dxs)

    @property
    def is_of_first_degree(self) -> bool:
        """Whether f(c x) = c f(x): the gradient is the same at each scale then.

        So no scale is too large to be checked. Powers of two cost no digits.
        """
        with np.errstate(all="ignore"):
            y = self._value(1.0)
            return bool(np.any(y)) and all(
                norm(self._value(c) - c * y) <= SAME * norm(c * y)
                for c in (2.0**8, 2.0**-8)
            )

    def _value(self, scale: float) -> np.ndarray:
        ys = self.exact.value([x * scale for x in self.exact.xs])
        return np.concatenate([np.ravel(y) for y in ys])


@dataclass(frozen=True)
class GradientPair:
    """A gradient in a dtype and in float64."""

    rule: RuleByDtype
    dtype: str
    xs: Arrays
    g: np.ndarray
    g64: np.ndarray

    @property
    def overflows(self) -> np.ndarray:
        """The elements that are NaN or infinite without need."""
        return self._fits & ~np.isfinite(self.g)

    @property
    def _fits(self) -> np.ndarray:
        """The elements that the dtype can hold."""
        return np.isfinite(self.g64) & (np.abs(self.g64) < LARGEST[self.dtype] / 8)

    def lost(self) -> float | None:
        """The error if no digit is right, unless rounding of the inputs explains it."""
        if not (np.all(np.isfinite(self.g)) and np.all(np.isfinite(self.g64))):
            return None
        fits = self._fits
        size, error = norm(self.g64[fits]), norm((self.g - self.g64)[fits])
        if error <= LOST * size or largest(self.g64[fits]) < TINY[self.dtype]:
            return None
        for _ in range(2):
            xs = jittered(self.rule.random, self.xs, EPS[self.dtype])
            moved = self.rule(xs, "float64")[1] - self.g64
            if error <= ROUNDINGS * norm(moved[fits]):
                return None
        return error / size


def gradient_pair(
    rule: RuleByDtype, xs: Arrays, dtype: str, *, finite: bool = True
) -> GradientPair | None:
    """The two gradients; None where a value is not finite.

    Without `finite` there is None for a finite gradient too: it costs half.
    """
    xs = rounded(xs, dtype)
    with np.errstate(all="ignore"):
        ys, g = rule(xs, dtype)
        if not (g.size and _all_finite([*xs, *ys])):
            return None
        if not finite and np.all(np.isfinite(g)):
            return None
        exact, g64 = rule(xs, "float64")
        if not _all_finite(exact) or _differ(ys, exact):
            return None
        return GradientPair(rule, dtype, xs, g, g64)


def _differ(ys: Arrays, exact: Arrays) -> bool:
    """Whether some values have no digit in common: random ones depend on the dtype."""
    top = max((largest(y) for y in exact), default=0.0)
    for y, true in zip(ys, exact, strict=True):
        sizes = np.maximum(np.abs(y), np.abs(true))
        if np.any((np.abs(y - true) > LOST * sizes) & (sizes > SMALL * top)):
            return True
    return False


def _all_finite(arrays: Arrays) -> bool:
    return all(np.all(np.isfinite(x)) for x in arrays)
