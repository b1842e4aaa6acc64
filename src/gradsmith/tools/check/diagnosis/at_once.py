"""Elements with a wrong gradient, all at once: each output has its own element."""

from __future__ import annotations

import numpy as np

from ..differences import slope
from ..first import SIGMAS, Ground
from .case import Case
from .evidence import ROUNDING
from .gather import USUAL


def at_once(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """The places in the argument where the gradient is wrong, and where it is right."""
    wrong, some = flags_at_once(case, case.ground)
    wrong &= ~_beside_kinks(case, np.flatnonzero(wrong))
    return np.flatnonzero(wrong), np.flatnonzero(some & ~wrong)


def flags_at_once(case: Case, ground: Ground) -> tuple[np.ndarray, np.ndarray]:
    """Where the gradient is wrong, and where there is one, if it is elementwise."""
    v = np.zeros(ground.x.size)
    v[case.part.slice] = ground.scale[case.part.slice]
    found = slope(
        ground.flat.value,
        ground.x,
        v,
        y=ground.y,
        noise=ground.noise,
        step=USUAL[0],
        steps=USUAL[1],
    )
    u = ground.upstream()
    with np.errstate(all="ignore"):
        g = (ground.point.pull(u) * v)[case.part.slice]
        one, two = u * found.low, u * found.high
        low, high = np.minimum(one, two), np.maximum(one, two)
        margin = SIGMAS * np.abs(u) * found.error
        margin += ROUNDING * ground.flat.eps * np.maximum(np.abs(g), np.abs(low))
        settled = np.isfinite(low) & np.isfinite(margin)
        wrong = settled & ~((g >= low - margin) & (g <= high + margin))
        return wrong, settled & (np.maximum(np.abs(low), np.abs(high)) > 8 * margin)


def _beside_kinks(case: Case, wrong: np.ndarray) -> np.ndarray:
    """Elements that are right if a kink near by is left out of the steps."""
    ground, here = case.ground, case.part.start + wrong
    right = np.zeros(case.part.size, bool)
    h, v = 2.0**-16, np.zeros(ground.x.size)
    v[here] = ground.scale[here]
    u = np.zeros(ground.y.size)
    u[wrong] = 1.0
    with np.errstate(all="ignore"):
        rough = _rough(ground, v, h)[wrong]
        g = (ground.point.pull(u) * v)[here]
        right[wrong] = np.abs(g - rough) <= 1e-6 * np.abs(rough)
    return right


def _rough(ground: Ground, v: np.ndarray, h: float) -> np.ndarray:
    few = ground.thin(v)
    if few is not None:
        x, v = few.x, v[few.places]
        return few.whole((few.value(x + h * v) - few.value(x - h * v)) / (2 * h))
    f = ground.flat.value
    return (f(ground.x + h * v) - f(ground.x - h * v)) / (2 * h)
