"""Is the gradient of vectors, or by several arguments, wrong? See `wrong`.

What it is off by is measured in parts of the largest element of a point's gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .arb import balls_of, ones, precision
from .balls import Balls, gradients, value_of, watched
from .causes import operation_of, rule_at
from .certify import certify
from .formats import FORMATS
from .rows import Rows
from .shapes import With
from .state import noting
from .targets import Target
from .wrong import BITS, SHARE, SHRINKS


def wrong_at(
    task: Rows, target: Target, held: With, xs: Sequence[Any], dy: Any, i: int
) -> Any:
    """By which share the i-th gradient is off at some points, by its formula."""
    operation = operation_of(target.op)
    if operation is not None:
        try:
            return _on_balls(operation, target, held, xs, dy, i, task)
        except Exception:  # whatever a rule does with what is no array
            pass
    try:
        return _in_two_precisions(task, xs, dy, i)
    except Exception:  # not every operation is there in each precision
        return np.full(len(xs[0]), np.nan)


def _on_balls(
    operation: Any, target: Target, held: With, xs: Any, dy: Any, i: int, task: Rows
) -> Any:
    shares = [
        _at_point(operation, target, held, [x[k] for x in xs], dy, k, i, task)
        for k in range(len(xs[0]))
    ]
    limit = 2.0 ** (4 - task.form.digits)
    return np.where(np.asarray(shares) > limit, shares, np.nan)


def _at_point(
    operation: Any, target: Target, held: With, point: Any, dy: Any, k: int, i: int,
    task: Rows,
) -> float:  # fmt: skip
    with precision(BITS), noting():
        given, again = (
            [watched(x.astype(np.float64), task.format) for x in point] for _ in "ab"
        )
        pull, y = rule_at(operation, held.inserted(given))
        upstream = ones(y.shape) if dy is None else balls_of(dy[k].astype(np.float64))
        dxs = pull(Balls(upstream, y.dtype))
        dx = value_of(dxs[i] if isinstance(dxs, (tuple, list)) else dxs)
        true = target.reference(*held.inserted(again))
        slope = gradients(true, np.broadcast_to(upstream, true.shape), again)[i]
        off = np.max(np.abs(np.broadcast_to(dx, slope.shape) - slope))
        size = np.max(np.abs(slope))
    if not (off.is_finite() and size.is_finite()):
        return float("nan")
    least = off.lower()
    if size.upper() == 0:
        return float("inf") if least > 0 else 0.0
    return max(float(least / size.upper()), 0.0)


def _in_two_precisions(task: Rows, xs: Sequence[Any], dy: Any, i: int) -> Any:
    form, double = task.form, FORMATS["float64"]
    low = FORMATS["float32"] if form.name == "float64" else form
    narrow = [x.astype(low.dtype) for x in xs]
    wide = [x.astype(np.float64) for x in narrow]
    up = None if dy is None else dy.astype(np.float64)
    slope = certify(task.reference, wide, double, dy=up)[1][i]
    with np.errstate(over="ignore", under="ignore"):
        true = _rows(np.ldexp(slope.hi, slope.scale))
    size = np.abs(true).max(1)
    rough, fine = (
        np.abs(_rows(task.run(each, f, dy)[1][i].astype(np.float64)) - true).max(1)
        for each, f in ((narrow, low), (wide, double))
    )
    wrong = (fine > SHARE * size) & (fine > SHRINKS * rough) & np.isfinite(rough)
    wrong &= fine != size  # a 0 may be what is left of a small number
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(wrong & (size > 0), fine / size, np.nan)


def _rows(x: Any) -> Any:
    return x.reshape(len(x), -1)
