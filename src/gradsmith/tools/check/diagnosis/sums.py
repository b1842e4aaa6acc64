"""A missing term with a sum over outputs: <dy, a> times anything, row by row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .answer import Answer, number
from .case import Case
from .dictionary import vectors
from .evidence import Evidence


def reduced(case: Case) -> Answer | None:
    """A sum over a row of outputs, times anything."""
    here, there = case.points
    if _per_element(here):
        return None
    pairs = zip(vectors(here), vectors(there), strict=False)
    for (name, a), (_, b) in pairs:
        for (axis, blocks), (_, others) in zip(
            _blocks(here), _blocks(there), strict=True
        ):
            if _explains(here, a, blocks) and _explains(there, b, others):
                return _of_sum(case, name, axis, blocks)
    return None


def _per_element(found: Evidence) -> bool:
    """Whether each element's gradient is a multiple of what it should be."""
    t, m = found.truth, found.matrix
    size = np.sum(t * t, axis=0)
    c = np.sum(t * m, axis=0) / np.where(size > 0, size, 1.0)
    return bool(np.all(np.abs(m - c * t) <= found.margin))


def _blocks(found: Evidence) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Outputs that a sum may go over: along one axis, or all."""
    outputs = found.ground.point.outputs.parts
    if len(outputs) != 1 or len(found.rows) != found.ground.y.size:
        return
    places = np.arange(outputs[0].size)
    if outputs[0].is_complex or places.size < 2:
        return
    shape = outputs[0].shape
    for axis in reversed(range(len(shape))):
        if shape[axis] > 1:
            lines = np.moveaxis(places.reshape(shape), axis, -1)
            yield f", axis={axis}", list(lines.reshape(-1, shape[axis]))
    if len(shape) > 1:
        yield "", [places]


def _explains(found: Evidence, a: np.ndarray, blocks: list[np.ndarray]) -> bool:
    """Whether the missing part of each block is a times a row."""
    data, spent = 0, 0
    for rows in blocks:
        d, margin, left = found.missing[rows], found.margin[rows], a[rows]
        row = left @ d / (left @ left)
        if np.any(
            np.abs(d - np.outer(left, row)) > 2 * margin.max(0) + 1e-9 * np.abs(d)
        ):
            return False
        active = np.any(np.abs(d) > margin, axis=0)
        data += int(active.sum()) * len(rows)
        spent += int(active.sum())
    return data >= 2 * spent and data > 3


def _of_sum(case: Case, name: str, axis: str, blocks: list[np.ndarray]) -> Answer:
    """Missing at all, or there with another factor."""
    found = case.evidence
    c = _factor_of_coupling(found, blocks)
    what = f"the term with sum({name}{axis})"
    if c is None:
        return Answer("dropped term", f"{what} is missing", "add the missing term")
    length = len(blocks[0])
    if abs(c * length - 1) < 1e-6:
        return Answer("mean for sum", f"{what} has a mean instead", "use the sum there")
    name = "sign of one term" if abs(c + 1) < 1e-6 else "factor of one term"
    by = number(c)
    return Answer(name, f"{what} is {by} times what it should be", f"divide it by {by}")


def _factor_of_coupling(found: Evidence, blocks: list[np.ndarray]) -> float | None:
    """How the rule's own coupling compares with the derivative's."""
    n = found.truth.shape[0]
    if found.truth.shape[1] != n:
        return None
    inside = np.zeros((n, n), bool)
    for rows in blocks:
        inside[np.ix_(rows, rows)] = True
    inside &= ~np.eye(n, dtype=bool)
    m, t = found.matrix[inside], found.truth[inside]
    if not np.any(m) or not np.any(t):
        return None
    c = float(m @ t) / float(t @ t)
    if abs(c) < 1e-9 or np.any(np.abs(m - c * t) > found.margin[inside] * (1 + abs(c))):
        return None
    return c
