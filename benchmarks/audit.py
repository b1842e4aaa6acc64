"""What an audit costs: certified points a second, and all numbers of a format.

Rates are those of two processes, as an audit of many points uses them. A rate is also
given for the processor time that was spent, which other work on the machine does not
change: on two idle cores both are the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special as sp

import gradsmith as gs
from benchmarks._measure import Progress
from benchmarks._report import Options, Report, Row
from benchmarks.accuracy.points import vectors
from gradsmith.tools.audit.certified.certify import certify
from gradsmith.tools.audit.formats import FORMATS
from gradsmith.tools.audit.sampling import sampled
from gradsmith.tools.workers import map_unordered

RATE, VECTORS = 2e5, 5e4  # a second
SHORT, LONG = 5.0, 180.0  # seconds for all numbers of 16 and of 32 bits
CORES = 2
FLOAT32 = FORMATS["float32"]
POINTS, ROWS = 4096, 1000  # in a chunk
UNARY = {
    "exp": (np.exp, (-100, 100)),
    "tanh": (np.tanh, (-100, 100)),
    "sinc": (np.sinc, (-100, 100)),
    "erf": (sp.erf, (-10, 10)),
    "gammaln": (sp.gammaln, (0, 100)),
    "log_ndtr": (sp.log_ndtr, (-100, 100)),
}


def softmax(x: Any) -> Any:
    return sp.softmax(x, axis=-1)


@dataclass(frozen=True)
class Points:
    """Certified values and derivatives of some numbers."""

    name: str

    def __call__(self, seed: int) -> int:
        fn, domain = UNARY[self.name]
        x = sampled(domain, FLOAT32, POINTS, seed=seed).astype(np.float64)
        value, (slope,) = certify(fn, [x], FLOAT32)
        return len(x) - max(value.count(3), slope.count(3))  # the decided ones


@dataclass(frozen=True)
class Softmaxes:
    """Certified softmaxes of 10 elements and their gradients."""

    def __call__(self, seed: int) -> int:
        rng = np.random.default_rng(seed)
        x = vectors(ROWS, 10, FLOAT32, seed=seed, largest=10.0).astype(np.float64)
        value, (slope,) = certify(softmax, [x], FLOAT32, dy=rng.normal(size=x.shape))
        open_ = (value.status == 3) | (slope.status == 3)
        return ROWS - int(open_.any(axis=1).sum())


@dataclass(frozen=True)
class Spent:
    """How long something took: by the clock, and in time of two processors."""

    clock: float
    processors: float


def timed(call: Callable[[], Any]) -> tuple[Any, Spent]:
    before, start = os.times(), time.perf_counter()
    result = call()
    clock, after = time.perf_counter() - start, os.times()
    used = sum(getattr(after, name) - getattr(before, name) for name in _TIMES)
    return result, Spent(clock, used / CORES)


_TIMES = ("user", "system", "children_user", "children_system")


def run(options: Options) -> Report:
    report, progress = Report("audit", options), Progress("audit")
    for name in UNARY:
        progress(f"{name}, point by point")
        _rate(report, f"{name}, points", Points(name), RATE, options.quick)
    progress("softmax")
    case = "softmax of 10 with its gradient, vectors"
    _rate(report, case, Softmaxes(), VECTORS, options.quick)
    for dtype in ("float16", "bfloat16"):
        progress(f"all of {dtype}")
        _all_numbers(report, np.tanh, dtype, None, SHORT)
    progress("all of float32")
    domain = (0.5, 0.5001) if options.quick else None
    _all_numbers(report, np.tanh, "float32", domain, LONG)
    return report


def _rate(report: Report, case: str, work: Any, least: float, quick: bool) -> None:
    """Rates are shown as time for each, so that less is better as everywhere."""
    n = 2 if quick else 24

    def call() -> int:
        return sum(done for _, done in map_unordered(work, range(n), jobs=CORES))

    done, spent = min((timed(call) for _ in range(3)), key=lambda pair: pair[1].clock)
    unit, most = "us", 1e6 / least
    for how, seconds in (("clock", spent.clock), ("2 cores' time", spent.processors)):
        target = 1.0 if how == "clock" else None
        ours = 1e6 * seconds / done
        report.rows.append(
            Row(f"{case}, {how}", ours, most, f"{least:.0e} a second", target, unit)
        )
    report.notes.append(
        f"{case}: {done / spent.clock:,.0f} a second by the clock, "
        f"{done / spent.processors:,.0f} by the time of 2 cores"
    )


def _all_numbers(report: Report, fn: Any, dtype: str, domain: Any, most: float) -> None:
    found, spent = timed(
        lambda: gs.audit(fn, domain, dtype=dtype, exhaustive=True, jobs=CORES)
    )
    case = f"all of {dtype}, {fn.__name__}"
    for how, seconds in (("clock", spent.clock), ("2 cores' time", spent.processors)):
        target = 1.0 if how == "clock" else None
        report.rows.append(Row(f"{case}, {how}", seconds, most, "at most", target, "s"))
    report.notes.append(
        f"{case}: {found.points:,} inputs, {found.undecided} undecided, the largest "
        f"errors {found.value.max_ulp:.4g} and {found.gradient.max_ulp:.4g} ULP"
    )
