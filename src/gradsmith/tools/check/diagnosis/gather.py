"""The derivative by differences, element by element or for all of them at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..differences import Slope, slope
from ..first import Ground
from ..flat import Part
from ..surroundings import SETTLED
from .evidence import Evidence

USUAL, SHARP = (2.0**-6, 3), (2.0**-4, 5)  # the first step, and how many


def gather(
    ground: Ground,
    part: Part,
    *,
    columns: np.ndarray | None = None,
    rows: np.ndarray | None = None,
    elementwise: bool = False,
    sharp: bool = False,
) -> Evidence:
    """Differences for the elements; at once if each output has its own element."""
    places = np.arange(part.start, part.start + part.size)
    columns = places if columns is None else columns
    rows = np.arange(ground.y.size) if rows is None else rows
    shape = (len(rows), len(columns))
    truth, error, kinks = np.zeros(shape), np.zeros(shape), np.zeros(shape, bool)
    step, steps = SHARP if sharp else USUAL
    for which, v in _directions(ground, columns, together=elementwise):
        found = _slope(ground, v, rows, step=step, steps=steps)
        scale = ground.scale[columns[which]]
        middle = (found.low + found.high) / 2
        if elementwise:
            own = (np.searchsorted(rows, columns[which] - part.start), which)
        else:
            own = (slice(None), which[0])
        pick = own[0]
        truth[own] = middle[pick] / scale
        error[own] = found.error[pick] / scale
        kinks[own] = found.kinks[pick]
    return _settled(Evidence(ground, part, columns, rows, truth, error, kinks))


def _slope(ground: Ground, v: np.ndarray, rows: np.ndarray, **steps: Any) -> Slope:
    """Of some outputs; by what moves alone, where that is enough."""
    few = ground.thin(v)
    if few is not None and np.array_equal(few.outputs, rows):
        return slope(few.value, few.x, v[few.places], y=few.y, noise=few.noise, **steps)
    return slope(
        lambda x: ground.flat.value(x)[rows],
        ground.x,
        v,
        y=ground.y[rows],
        noise=ground.noise[rows],
        **steps,
    )


def _directions(
    ground: Ground, columns: np.ndarray, *, together: bool
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    every = np.arange(len(columns))
    for which in [every] if together else np.split(every, len(every)):
        v = np.zeros(ground.x.size)
        v[columns[which]] = ground.scale[columns[which]]
        yield which, v


def _settled(found: Evidence) -> Evidence:
    """Without the outputs whose differences have not settled."""
    with np.errstate(all="ignore"):
        size = np.abs(np.where(np.isfinite(found.truth), found.truth, 0.0))
        natural = np.abs(found.ground.y[found.rows]).max(initial=0.0)
        scale = found.ground.scale[found.columns]
        size = np.maximum(size.max(axis=0, initial=0.0), natural / scale)
        good = np.isfinite(found.truth) & (found.error <= SETTLED * size)
    if good.all():
        return found
    return found.of_rows(np.flatnonzero(np.all(good, axis=1)))
