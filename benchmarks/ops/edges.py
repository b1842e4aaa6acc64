"""Who gives a NaN where: values and gradients on the edges of float32.

The inputs are finite numbers and, for rows, masked logits (minus infinity). A result
is NaN or not; an infinite one is what the true value rounds to, or isn't.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks._report import Report
from benchmarks.ops.cases import STABLE, Case
from benchmarks.ops.loss_cases import LOSSES
from benchmarks.ops.native import Framework

MOST = float(np.finfo(np.float32).max)
SIZES = (0.0, 1e-45, 1e-40, 1e-20, 1.0, 88.8, 104.0, 1e4, 1e20, 1e30, MOST)
NUMBERS = [*SIZES, *(-x for x in SIZES)]
ROWS = {
    "zeros": [0.0, 0.0, 0.0],
    "a tie at 1e4": [1e4, 1e4, 0.0],
    "1e-40": [1e-40, -1e-40, 0.0],
    "the greatest number": [MOST, -MOST, 0.0],
    "two of the greatest": [MOST, MOST, MOST],
    "-1e4": [-1e4, -1e4, -1e4],
    "a masked logit": [-np.inf, 1.0, 0.0],
    "all masked": [-np.inf, -np.inf, -np.inf],
}
BY_ROW = ("softmax", "log_softmax", "logsumexp", "norm", "cross_entropy")
NOT_NEGATIVE = ("sqrt", "log1mexp", "xlogy")
WITHOUT_MASKS = ("norm",)


def add_edges(framework: Framework, report: Report, only: str | None) -> None:
    """A note for each operation where ours or theirs gives a NaN."""
    for case in (*STABLE, *LOSSES):
        if only not in (None, case.name) or case.inputs not in _SECOND:
            continue
        ours = failures(case, framework, case.ours)
        who, theirs = case.theirs(framework)
        other = failures(case, framework, theirs)
        name = f"{case.name} in {framework.name}"
        if other - ours:
            places = ", ".join(sorted(other - ours))
            report.notes.append(f"NaN, {name}: {who} at {places}; ours nowhere there")
        if ours - other:
            places = ", ".join(sorted(ours - other))
            report.refused.append(f"{name} gives NaN at {places}, where {who} doesn't")


# The other arguments of a case, for every input of the first
_SECOND: dict[str, list[Any]] = {
    "x": [],
    "p": [],
    "xx": [np.float32(1.0)],
    "pp": [np.float32(0.0)],
    "xb": [np.float32(1.0)],
    "xp": [np.float32(1.0)],
    "xl": [0],
    "xq": [],
}


def failures(case: Case, framework: Framework, fn: Any) -> set[str]:
    """The inputs at which a value or a gradient is NaN."""
    if case.inputs == "xq":
        return set()
    found = set()
    for name, x in _inputs(case):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if _is_nan(case, framework, fn, x):
                found.add(name)
    return found


def _inputs(case: Case) -> list[tuple[str, Any]]:
    if case.name in BY_ROW:
        rows = ROWS.items()
        if case.name in WITHOUT_MASKS:
            rows = [(name, row) for name, row in rows if "mask" not in name]
        return [(name, np.array([row], np.float32)) for name, row in rows]
    numbers = NUMBERS if case.name not in NOT_NEGATIVE else [*SIZES]
    return [(f"{x:g}", np.full((1, 1), x, np.float32)) for x in numbers]


def _is_nan(case: Case, framework: Framework, fn: Any, x: Any) -> bool:
    others = [_like(each, x, case.inputs) for each in _SECOND[case.inputs]]
    arrays = [framework.array(each) for each in (x, *others)]
    shape = tuple(fn(*arrays).shape)
    dy = framework.array(np.ones(shape, np.float32))
    n = len(arrays) if case.floats is None else case.floats
    results = framework.pull(fn, n)(dy, *arrays)
    plain = [framework.plain(each) for each in results if each is not None]
    return any(bool(np.isnan(each).any()) for each in plain)


def _like(each: Any, x: Any, inputs: str) -> Any:
    if inputs == "xl":
        return np.ones(len(x), np.int64)
    return np.full(x.shape, each, np.float32)
