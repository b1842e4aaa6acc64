"""Does the rule give in float32, bfloat16 and float16 what it gives in float64?

At the same inputs, which are exact in both, and only roughly: how many digits it loses
is not the question here. A gradient that is NaN or infinite though the value is finite,
or that has lost all of its digits, is wrong; so is one in float64 that was computed in
less than that.
"""

from __future__ import annotations

import numpy as np

from ...core.arrays import NUMPY
from .flat import EPS
from .linear import Arrays
from .model import Finding, Verdict
from .native import reason
from .pairs import LOST, Pair, Runs, pair_of
from .problem import Problem
from .rounding import precision_of
from .session import Session

WHAT = "precision"
DTYPES = ("float32", "bfloat16", "float16")
LARGE = (20.0, 90.0, 200.0, 1e4)  # exp overflows in float32 beyond 88.7
SQUARED = 2.0**66  # its square overflows


def look(session: Session, problem: Problem, scenario: str = "given") -> None:
    """Each dtype at the inputs given, and float32 at large and small ones too."""
    if problem.fixed or any(name.startswith("complex") for name in problem.dtypes):
        return
    exact = problem.in_dtype("float64")
    if exact.dtypes != problem.dtypes:
        return  # it does not take float64: there is nothing to compare with
    random = session.random(f"precision {scenario}")
    runs = Runs(exact, random)
    _look_at_digits(session, runs, scenario)
    for dtype in DTYPES:
        if dtype == "bfloat16" and problem.framework.name == NUMPY:
            continue  # NumPy has none
        try:
            finding = _at(runs, exact.xs, dtype, scenario)
            if finding is None and dtype == "float32":
                finding = _at_others(runs, dtype, scenario)
        except Exception as error:
            session.note(f"not in {dtype}: {reason(error)}")
            continue
        if finding is None:
            session.looked(f"{WHAT} {dtype}", scenario, Verdict.RIGHT, LOST)
        else:
            session.found(finding)
            return  # the others would follow


def _at(runs: Runs, xs: Arrays, dtype: str, scenario: str) -> Finding | None:
    pair = pair_of(runs, xs, dtype)
    if pair is None:
        return None
    if np.any(pair.overflows):
        return _overflow(pair, scenario)
    error = pair.lost()
    if error is None or not _lost_again(runs, xs, dtype):
        return None
    return _all_lost(pair, error, scenario)


def _at_others(runs: Runs, dtype: str, scenario: str) -> Finding | None:
    """The same inputs, scaled such that the largest is of a magnitude."""
    values = runs.arguments.vector(runs.exact.xs)
    top = float(np.max(np.abs(values), initial=0.0))
    if not 0 < top < np.inf:
        return None
    scales = [large / top for large in LARGE if large > top] + [1e-4]
    if np.all(values >= 0) or np.all(values <= 0):
        scales += [-LARGE[1] / top]
    for scale in scales:
        xs = [x * scale for x in runs.exact.xs]
        pair = pair_of(runs, xs, dtype, finite=False)
        if pair is not None and np.any(pair.overflows):
            return _overflow(pair, scenario)
    if runs.is_of_first_degree:
        xs = [x * (SQUARED / top) for x in runs.exact.xs]
        return _at(runs, xs, dtype, scenario)
    return None


def _lost_again(runs: Runs, xs: Arrays, dtype: str) -> bool:
    """Whether it is so near by as well, not only at a tie of rounded numbers."""
    for _ in range(2):
        near = [x * runs.random.uniform(0.9, 1.1, x.shape) for x in xs]
        pair = pair_of(runs, near, dtype)
        if pair is None or pair.lost() is None:
            return False
    return True


def _overflow(pair: Pair, scenario: str) -> Finding:
    i = int(np.argmax(pair.overflows))
    part = pair.runs.arguments.part_of(i)
    index, x = part.index(i), pair.runs.arguments.vector(pair.xs)[i]
    what = "NaN" if np.isnan(pair.g[i]) else "infinite"
    return Finding(
        WHAT,
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


def _all_lost(pair: Pair, error: float, scenario: str) -> Finding:
    largest = max(float(np.max(np.abs(x), initial=0.0)) for x in pair.xs)
    return Finding(
        WHAT,
        f"in {pair.dtype} the gradient has no right digit: it is off by "
        f"{100 * error:.0f} % of what it is in float64 at the same inputs, of a size "
        f"up to {largest:.2g}",
        scenario=scenario,
        error=error,
        noise=LOST,
        repair="rearrange what cancels, or compute it in float32 or float64 inside",
    )


def _look_at_digits(session: Session, runs: Runs, scenario: str) -> None:
    """A float64 gradient with the digits of a float32, though the value has more."""
    random = runs.random
    xs = [x * random.uniform(0.99, 1.01, x.shape) for x in runs.exact.xs]
    us = [random.uniform(-1, 1, u.shape) for u in runs.us]
    ys, g = runs(xs, "float64", us)
    if all(precision_of(y, few=1) for y in ys):
        return
    for part in runs.arguments.parts:
        dtype = precision_of(part.array(g))
        if dtype is None:
            continue
        session.found(
            Finding(
                WHAT,
                f"the gradient in float64 has the digits of a {dtype} only",
                argument=part.name,
                scenario=scenario,
                error=EPS[dtype],
                diagnosis="precision lost",
                repair=f"don't cast to {dtype} in the rule, and make no array of it",
            )
        )
