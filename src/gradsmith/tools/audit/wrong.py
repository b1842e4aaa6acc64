"""Is a gradient that is far off wrong, or only inaccurate?

A rule of ours is run on balls: what differs from the true derivative then is not due
to rounding. Where that can't be done, as in a framework, the gradient is computed in
two precisions: an error that does not shrink is one of the formula.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import GradsmithError
from ...operations.operation import Operation
from .arb import each, ones, precision
from .balls import Balls, gradients, watched
from .causes import operation_of, rule_at
from .certify import certify
from .formats import FORMATS, Format
from .runs import Run
from .state import noting
from .truth import DECIDED

BITS = 512
SHARE = 2.0**-12  # what a formula is off by at least, in double precision
SHRINKS = 2.0**-8  # how much smaller the error in double precision is, at most


def off_by_formula(run: Run, fn: Any, reference: Any, x: Any, form: Format) -> Any:
    """By which share the formula is off at each input; NaN: not that we know."""
    operation = operation_of(fn)
    if operation is not None:
        try:
            return _on_balls(operation, reference, x, form)
        except Exception:  # whatever a rule does with what is no array
            pass
    try:
        return _in_two_precisions(run, reference, x, form)
    except Exception:  # not every operation is there in each precision
        return np.full(len(x), np.nan)


_share = each(lambda got, true: _share_of(got, true), 2)


def _share_of(got: Any, true: Any) -> float:
    """How far two balls are apart at least, in parts of the true one."""
    size = abs(true)
    if not got.is_finite() or not true.is_finite():
        return float("nan")
    apart = abs(got - true).lower()
    if size == 0:
        return float("inf") if apart > 0 else 0.0
    return float(apart / size.upper()) if apart > 0 else 0.0


def _on_balls(operation: Operation, reference: Any, x: Any, form: Format) -> Any:
    with precision(BITS), noting():
        xs = [watched(x.astype(np.float64), form.name)]
        pull, y = rule_at(operation, xs)
        dx = pull(Balls(ones(y.shape), y.dtype))
        dx = dx[0] if isinstance(dx, (tuple, list)) else dx
        if not isinstance(dx, Balls):
            raise GradsmithError("not a gradient on balls")
        again = [watched(x.astype(np.float64), form.name)]
        true = reference(*again)
        (slope,) = gradients(true, ones(true.shape), again)
    shares = np.asarray(_share(np.broadcast_to(dx.value, slope.shape), slope), float)
    return np.where(shares > 2.0 ** (4 - form.digits), shares, np.nan)


def _in_two_precisions(run: Run, reference: Any, x: Any, form: Format) -> Any:
    low = FORMATS["float32"] if form.name == "float64" else form
    double = FORMATS["float64"]
    x = x.astype(low.dtype)
    wide = x.astype(np.float64)
    _, (slope,) = certify(reference, [wide], double)
    with np.errstate(over="ignore", under="ignore"):
        true = np.ldexp(slope.hi, slope.scale)
    rough, fine = (
        np.abs(run([each], form)[1][0].astype(np.float64) - true)
        for each, form in ((x, low), (wide, double))
    )
    known = (slope.status == DECIDED) & np.isfinite(rough) & np.isfinite(fine)
    not_zero = fine != np.abs(true)  # a 0 may be what is left of a small number
    wrong = known & not_zero & (fine > SHARE * np.abs(true)) & (fine > SHRINKS * rough)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(wrong, fine / np.abs(true), np.nan)
