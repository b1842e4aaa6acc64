"""A term that is missing: the difference to the truth has a form of its own.

Each form is fitted at one point and has to hold at another too:

    dropped entries    the rule is right or zero, element by element
    a constant         the difference is the same at both points
    c f(x, y, ...)     times dy: a factor of the dictionary, the same c at both points
    <dy, a> b          a sum over an output row, with a of the dictionary
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .answer import Answer, number
from .case import Case
from .dictionary import factors, vectors
from .evidence import Evidence
from .structure import structures

ADD = "add the missing term"


def dropped(case: Case) -> Answer | None:
    if case.fresh is None or len(case.evidence.columns) < 2:
        return None
    if len(case.evidence.rows) * len(case.evidence.columns) > 250_000:
        return None
    for look in (unused_output, _entries, _constant, local, _reduced):
        answer = look(case)
        if answer is not None:
            return answer
    return None


def unused_output(case: Case) -> Answer | None:
    """The upstream gradients of some of the outputs are not used."""
    every = [structures(each) for each in case.points]
    if not all(len(s) > 1 for s in every):
        return None
    unused = [s.output.name for s in every[0] if s.is_wrong and not np.any(s.rule)]
    wrong = [s.output.name for s in every[0] if s.is_wrong]
    if not unused or wrong != unused:
        return None
    names = " and ".join(unused)
    return Answer(
        "dropped term",
        f"the upstream gradient of {names} is not used",
        f"add the term with the upstream gradient of {names}",
    )


def _entries(case: Case) -> Answer | None:
    """Some of the outputs' contributions are missing, the others are right."""
    for found in case.points:
        kept = np.abs(found.missing) <= found.margin
        nothing = found.matrix == 0
        if not np.all(kept | nothing):
            return None
        gone = ~kept & nothing
        if not np.any(gone) or not np.any(kept & ~nothing):
            return None
    return Answer(
        "dropped term",
        "some of the contributions to the gradient are right and the others missing",
        ADD,
    )


def _constant(case: Case) -> Answer | None:
    """The same at both points, though the derivative is not."""
    here, there = case.points
    if here.missing.shape != there.missing.shape or case.part.size < 3:
        return None
    near = here.margin + there.margin
    changed = np.abs(here.truth - there.truth) > near
    if np.any(np.abs(here.missing - there.missing) > near) or not np.any(changed):
        return None
    if not np.any(np.abs(here.missing) > 4 * near):
        return None
    values = here.missing[np.abs(here.missing) > near]
    c = f"{number(float(values[0]))} dy" if np.ptp(values) < 1e-6 else "constant times dy"
    where = "" if values.size == here.truth.any(0).sum() else ", for some elements"
    return Answer("dropped term", f"the term {c} is missing{where}", ADD)


def local(case: Case) -> Answer | None:
    """c f dy, for one factor f of the dictionary."""
    tables = [_table(found) for found in case.points]
    if any(table is None for table in tables):
        return None
    (d, margin, named), (d2, margin2, named2) = tables  # type: ignore[misc]
    for (name, f), (_, f2) in zip(named, named2, strict=True):
        if not np.all(np.isfinite(f)) or not np.any(f):
            continue
        c = float(d @ f) / float(f @ f)
        if np.all(np.abs(d - c * f) <= margin + 1e-9 * np.abs(d)) and np.all(
            np.abs(d2 - c * f2) <= margin2 + 1e-9 * np.abs(d2)
        ):
            times = {"1": "", "-1": "-"}.get(number(c), number(c) + " ")
            term = times + ("dy" if name == "1" else f"{name} dy")
            return Answer("dropped term", f"the term {term} is missing", f"add {term}")
    return None


def _table(found: Evidence) -> tuple | None:
    """The difference as one number for each element, with what may explain it."""
    apart = np.abs(found.missing) > found.margin
    if np.any(np.sum(apart, axis=0) > 1):
        return None
    if found.truth.shape[0] == found.truth.shape[1]:
        off = ~np.eye(found.truth.shape[0], dtype=bool)
        if np.any(apart & off):
            return None
        pick = np.diagonal
    else:
        own = np.argmax(np.abs(found.truth) + np.abs(found.matrix), axis=0)

        def pick(a: np.ndarray) -> np.ndarray:
            return a[own, np.arange(a.shape[1])]

    named = factors(found, np.array(pick(found.matrix)))
    return np.array(pick(found.missing)), np.array(pick(found.margin)), named


def _reduced(case: Case) -> Answer | None:
    """A sum over a row of outputs, times anything."""
    here, there = case.points
    pairs = zip(vectors(here), vectors(there), strict=False)
    for (name, a), (_, b) in pairs:
        for (axis, blocks), (_, others) in zip(_blocks(here), _blocks(there), strict=True):
            if _explains(here, a, blocks) and _explains(there, b, others):
                return _of_sum(case, name, axis, blocks)
    return None


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
            yield f" over axis {axis}", list(lines.reshape(-1, shape[axis]))
    if len(shape) > 1:
        yield "", [places]


def _explains(found: Evidence, a: np.ndarray, blocks: list[np.ndarray]) -> bool:
    """Whether the missing part of each block is a times a row."""
    data, spent = 0, 0
    for rows in blocks:
        d, margin, left = found.missing[rows], found.margin[rows], a[rows]
        row = left @ d / (left @ left)
        if np.any(np.abs(d - np.outer(left, row)) > 2 * margin.max(0) + 1e-9 * np.abs(d)):
            return False
        active = np.any(np.abs(d) > margin, axis=0)
        data += int(active.sum()) * len(rows)
        spent += int(active.sum())
    return data >= 2 * spent and data > 3


def _of_sum(case: Case, name: str, axis: str, blocks: list[np.ndarray]) -> Answer:
    """Missing at all, or there with another factor."""
    found = case.evidence
    c = _factor_of_coupling(found, blocks)
    what = f"the term with sum({name}{axis.replace(' over', ',').replace('axis ', 'axis=')})"
    if c is None:
        return Answer("dropped term", f"{what} is missing", ADD)
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
