"""Linear interpolation.

Between the knots p0 and p1 with the values f0 and f1, and beyond the first and the last
knot with t held at 0 or 1,

    y = f0 + t (f1 - f0),   t = (x - p0) / (p1 - p0),   slope = (f1 - f0) / (p1 - p0).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.rule import composite, differentiable, index, primitive
from .arithmetic import over
from .axes import as_array, as_type, conj
from .indexing import scatter


@primitive
def interpolated(x: Any, xp: Any, fp: Any, left: Any, right: Any) -> Any:
    return np.interp(x, xp, fp, left, right)


def _around(x: Any, xp: Any) -> tuple[Any, Any]:
    """The positions of the knots around each x."""
    last = xp.shape[0] - 1
    j = np.searchsorted(xp, x, side="right") - 1
    j = np.minimum(np.maximum(j, 0), max(last - 1, 0))
    return j, np.minimum(j + 1, last)


def _between(x: Any, xp: Any, j: Any, k: Any) -> Any:
    """How far each x has come from its left knot to its right one."""
    t = np.clip(over(x - index(xp, j), index(xp, k) - index(xp, j)), 0, 1)
    return np.where(x == x, t, 0)


def _slope(x: Any, xp: Any, fp: Any, j: Any, k: Any) -> Any:
    within = (x >= xp[0]) & (x <= xp[-1])
    return np.where(
        within, over(index(fp, k) - index(fp, j), index(xp, k) - index(xp, j)), 0
    )


def _weights(x: Any, xp: Any, left: Any, right: Any, j: Any, k: Any) -> Any:
    """The weights in y of the values at the knots around each x."""
    t = _between(x, xp, j, k)
    counts = x == x
    if left is not None:
        counts = counts & (x >= xp[0])
    if right is not None:
        counts = counts & (x <= xp[-1])
    return np.where(counts, 1 - t, 0), np.where(counts, t, 0)


def interp_dx(dy: Any, y: Any, x: Any, xp: Any, fp: Any, left: Any, right: Any) -> Any:
    return dy * conj(_slope(x, xp, fp, *_around(x, xp)))


def interp_dxp(dy: Any, y: Any, x: Any, xp: Any, fp: Any, left: Any, right: Any) -> Any:
    j, k = _around(x, xp)
    t = _between(x, xp, j, k)
    pull = np.real(dy * conj(_slope(x, xp, fp, j, k)))
    return -scatter((1 - t) * pull, j, xp.shape) - scatter(t * pull, k, xp.shape)


def interp_dfp(dy: Any, y: Any, x: Any, xp: Any, fp: Any, left: Any, right: Any) -> Any:
    j, k = _around(x, xp)
    w0, w1 = _weights(x, xp, left, right, j, k)
    return scatter(w0 * dy, j, fp.shape) + scatter(w1 * dy, k, fp.shape)


def interp_jvp(
    dxs: Any, y: Any, x: Any, xp: Any, fp: Any, left: Any, right: Any
) -> Any:
    dx, dxp, dfp = dxs
    j, k = _around(x, xp)
    t = _between(x, xp, j, k)
    w0, w1 = _weights(x, xp, left, right, j, k)
    moved = dx - (1 - t) * index(dxp, j) - t * index(dxp, k)
    return _slope(x, xp, fp, j, k) * moved + w0 * index(dfp, j) + w1 * index(dfp, k)


differentiable(
    interpolated,
    (interp_dx, interp_dxp, interp_dfp),
    interp_jvp,
    saves="x xp fp",
    arrays=3,
)


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    x, xp, fp = as_array(x), as_array(xp), as_array(fp)
    if period is None:
        return interpolated(x, xp, fp, left, right)
    period = abs(period)
    x, xp = as_type(x, np.float64) % period, as_type(xp, np.float64) % period
    order = np.argsort(xp)
    xp, fp = xp[order], fp[order]
    xp = np.concatenate([xp[-1:] - period, xp, xp[:1] + period])
    fp = np.concatenate([fp[-1:], fp, fp[:1]])
    return interpolated(x, xp, fp, None, None)


composite(
    np.interp, interp, note="at a knot the slope to its right, at the last to its left"
)
