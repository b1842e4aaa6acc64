"""A comparison that came out wrong is repeated before it is reported.

Each time with fresh random numbers. Among many elements, those that seem wrong are
compared on their own first: they are few if the mistake is local, and it costs little
then.

Where several kinks meet (sorting equal numbers, equal eigenvalues) more gradients are
valid than the two one-sided ones. The median of three equal numbers moves by the median
of the directions, from both sides; the gradient of each choice of one of the three is
valid none the less. Clarke's generalized gradient is what the derivatives nearby tend
to, and all between them: those are sampled, with steps much shorter than the distance
to the sampled points.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from . import differences
from .comparison import Comparison
from .numerics import sampled_median
from .point import MANY, SIGMAS, STEP, Point
from .richardson import RATIO

STEPS = (0.09375, 0.0625, 0.109375, 0.078125)
# A small wave on something steep seems straight to steps longer than many waves.
SHORT = 2.0**-17

AWAY = 2.0**-18  # far enough that y still has digits for differences
SHORTER = 64
FIRST, MORE = 12, 24
FEW = 3  # of many elements, some show it early
SMOOTH = 0.05  # what slopes so near may differ by, if there is no kink


def confirmed(point: Point, comparison: Comparison) -> bool:
    """Whether a comparison is wrong with fresh directions and other steps too."""
    v = _suspects(point, comparison)
    if v is not None and (fresh := _again(point, replace(comparison, v=v))) is not None:
        return not _is_generalized_gradient(point, fresh)
    if _again(point, comparison) is None or not _is_additive(point, comparison):
        return False
    return not _is_generalized_gradient(point, comparison)


def _again(point: Point, comparison: Comparison) -> Comparison | None:
    """The last comparison, if all of them are wrong.

    By the same outputs: of many, some always seem settled by chance.
    """
    among, last = (comparison.u != 0) & _alike(point, comparison), None
    # Many elements are as good as many tries.
    for step in STEPS if point.x.size < MANY else STEPS[:2]:
        wrong = [each for each in point.again(comparison, step, among) if each.is_wrong]
        if not wrong:
            return None
        among &= np.any([each.u != 0 for each in wrong], axis=0)
        last = wrong[0]
    return last


def _alike(point: Point, comparison: Comparison) -> np.ndarray:
    """The outputs for which short steps don't contradict long ones."""
    long, short = comparison.slope, point.slope(comparison.v, SHORT)
    with np.errstate(all="ignore"):
        apart = np.maximum(short.low - long.high, long.low - short.high)
        return ~(apart > SIGMAS * (short.error + long.error))


def _is_additive(point: Point, comparison: Comparison) -> bool:
    """Whether slopes by several arguments add up, where none has a kink.

    Where they don't, the value has no derivative: it depends on whether an argument is
    exactly 0, say, and jumps beside it.
    """
    parts = [part.slice for part in point.flat.arguments.parts]
    moved = [part for part in parts if np.any(comparison.v[part])]
    if len(moved) < 2:
        return True
    alone = []
    for part in moved:
        v = np.zeros_like(comparison.v)
        v[part] = comparison.v[part]
        alone.append(point.slope(v))
    known = np.logical_and.reduce([point.settled(each) for each in alone])
    smooth = ~np.logical_or.reduce([each.kinks for each in (*alone, comparison.slope)])
    with np.errstate(all="ignore"):
        gap = np.abs(np.sum([each.low for each in alone], 0) - comparison.slope.low)
        error = np.sum([each.error for each in (*alone, comparison.slope)], 0)
        apart = gap > np.maximum(SIGMAS * error, SMOOTH * comparison.slope.size)
    return not np.any(apart & known & smooth & (comparison.u != 0))


def _suspects(point: Point, comparison: Comparison) -> np.ndarray | None:
    """The direction without the elements that seem right; None if that is no less."""
    if point.x.size < MANY or not point.is_elementwise:
        return None
    known = comparison.u != 0
    found = (comparison.slope.low, comparison.slope.high, comparison.slope.error)
    terms = comparison.terms[comparison.part.slice]
    one, two, error = (np.where(known, each, 0.0) * comparison.u for each in found)
    low, high = (
        _by_element(ends(one, two), terms) for ends in (np.minimum, np.maximum)
    )
    margin = SIGMAS * _by_element(np.abs(error), terms)
    wrong = np.maximum(low - terms, terms - high) > margin
    v = np.zeros_like(comparison.v)
    v[comparison.part.slice] = np.where(wrong, comparison.v[comparison.part.slice], 0.0)
    return v if point.subset(v) is not None else None


def _by_element(y: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """The sum over the outputs that belong to each element."""
    return np.sum(y.reshape(-1, terms.size), axis=0)


def _is_generalized_gradient(point: Point, comparison: Comparison) -> bool:
    """Whether the rule is between the slopes at points nearby, where they jump."""
    if point.flat.eps > AWAY**2:
        return False  # too few digits for such short steps
    first = FIRST if point.y.size < 1000 else FEW
    close = [_slope_near(point, comparison.v) for _ in range(first)]
    rough = _roughness(point, comparison)
    if not np.any(_jumps(close, rough) & (comparison.u != 0)):
        return False  # it is smooth
    close += [_slope_near(point, comparison.v) for _ in range(MORE)]
    here, jumps = point.slope(comparison.v), _jumps(close, rough)
    low, high = np.min(close, 0), np.max(close, 0)
    beyond = (high - low) / 2  # what a sample misses
    low = np.where(jumps, np.fmin(low - beyond, here.low), here.low)
    high = np.where(jumps, np.fmax(high + beyond, here.high), here.high)
    ends = np.where(comparison.u != 0, [low, high], 0.0) * comparison.u
    least, most = np.sum(np.min(ends, 0)), np.sum(np.max(ends, 0))
    return bool(least - comparison.error <= comparison.rule <= most + comparison.error)


def _slope_near(point: Point, v: np.ndarray) -> np.ndarray:
    return point.central_difference(v, AWAY / SHORTER, AWAY * point.direction())


def _roughness(point: Point, comparison: Comparison) -> np.ndarray | float:
    """What a solver that stops at its tolerance makes of slopes by such short steps."""
    if not point.flat.problem.traits.iterates:
        return 0.0
    shortest = STEP / RATIO ** (differences.STEPS - 1)
    return SIGMAS**2 * comparison.slope.error * shortest / (AWAY / SHORTER)


def _jumps(close: list[np.ndarray], rough: np.ndarray | float) -> np.ndarray:
    """Where slopes differ by more than a curve explains; never for NaN."""
    size = np.max(np.abs(close), axis=0)
    known = size[np.isfinite(size)]
    typical = sampled_median(known) if known.size else 0.0
    spread = np.max(close, axis=0) - np.min(close, axis=0)
    return spread > np.maximum(SMOOTH * np.maximum(size, typical), rough)
