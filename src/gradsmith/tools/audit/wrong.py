"""Is a gradient that is far off wrong, or only inaccurate?

A rule of ours is run on balls: what differs from the true derivative then is not due
to rounding. Where that can't be done, as in a framework, the gradient is computed in
two precisions: an error that does not shrink is one of the formula. What a gradient is
off by is measured in parts of its largest element at a point.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...operations.operation import Operation
from .arguments import Fixed
from .causes import operation_of, rule_at
from .certified.arb import balls_of, each, ones, precision
from .certified.balls import Balls, gradients, noting, value_of, watched
from .certified.certify import certify
from .certified.truth import DECIDED
from .formats import FORMATS
from .task import AuditTask, Points

BITS = 512
SHARE = 2.0**-12  # what a formula is off by at least, in double precision
SHRINKS = 2.0**-8  # how much smaller the error in double precision is, at most


def off_by_formula(
    task: AuditTask, op: Fixed, reference: Fixed, points: Points, i: int
) -> Any:
    """By which share the formula of the i-th gradient is off at each point.

    NaN where it is not known to be off. `op` and `reference` take the arguments of one
    point.
    """
    operation = operation_of(op.fn)
    if operation is not None:
        try:
            return _on_balls(task, op, operation, reference, points, i)
        except Exception:  # whatever a rule does with what is no array
            pass
    try:
        return _in_two_precisions(task, points, i)
    except Exception:  # not every operation exists in each precision
        return np.full(len(points), np.nan)


def _on_balls(
    task: AuditTask, op: Fixed, operation: Operation, reference: Fixed, points: Points,
    i: int,
) -> Any:  # fmt: skip
    def off(some: Points) -> tuple[Any, Any]:
        """How far the rule is off, and the true gradient."""
        given, again = (
            [watched(x.astype(np.float64), task.format) for x in some.xs] for _ in "ab"
        )
        pull, y = rule_at(operation, op.complete(given))
        dy = some.dy
        dy = ones(y.shape) if dy is None else balls_of(dy.astype(np.float64))
        dxs = pull(Balls(dy, y.dtype))
        dx = value_of(dxs[i] if isinstance(dxs, (tuple, list)) else dxs)
        true = reference(*again)
        slope = gradients(true, np.broadcast_to(dy, true.shape), again)[i]
        return np.abs(np.broadcast_to(dx, slope.shape) - slope), np.abs(slope)

    with precision(BITS), noting():
        if all(x.ndim == 1 for x in points.xs):  # numbers: all points at once
            shares = np.asarray(_share(*off(points)), float)
        else:
            found = [off(points.at(k)) for k in range(len(points))]
            shares = np.array([_share_of(*map(np.max, parts)) for parts in found])
    return np.where(shares > 2.0 ** (4 - task.form.digits), shares, np.nan)


def _share_of(off: Any, size: Any) -> float:
    """How large one ball is at least, in parts of another."""
    if not off.is_finite() or not size.is_finite():
        return float("nan")
    least = off.lower()
    if size.upper() == 0:
        return float("inf") if least > 0 else 0.0
    return float(least / size.upper()) if least > 0 else 0.0


_share = each(_share_of, 2)


def _in_two_precisions(task: AuditTask, points: Points, i: int) -> Any:
    form, double = task.form, FORMATS["float64"]
    low = FORMATS["float32"] if form.name == "float64" else form
    narrow = [x.astype(low.dtype) for x in points.xs]
    wide = [x.astype(np.float64) for x in narrow]
    dy = None if points.dy is None else points.dy.astype(np.float64)
    slope = certify(task.reference, wide, double, dy=dy)[1][i]
    true = _rows(slope.number)
    size = np.abs(true).max(1)
    rough, fine = (
        np.abs(_rows(task.runner(xs, f, points.dy)[1][i].astype(np.float64)) - true)
        for xs, f in ((narrow, low), (wide, double))
    )
    rough, fine = rough.max(1), fine.max(1)
    known = (_rows(slope.status) == DECIDED).all(1)
    known &= np.isfinite(rough) & np.isfinite(fine)
    not_zero = fine != size  # a 0 may be what is left of a small number
    wrong = known & not_zero & (fine > SHARE * size) & (fine > SHRINKS * rough)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(wrong, fine / size, np.nan)


def _rows(x: Any) -> Any:
    return x.reshape(len(x), -1)
