"""A term that is missing: the difference to the truth has a form of its own.

Each form is fitted at one point and has to hold at another too:

    dropped entries    the rule is right or zero, element by element
    a constant         the difference is the same at both points
    c f(x, y, ...)     times dy: a candidate factor f, the same c at both points
    <dy, a> b          a sum over outputs, with candidate weights a
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from .case import Case
from .evidence import Evidence
from .factors import Named, candidate_factors, candidate_weights
from .jacobian import jacobian_blocks
from .model import Diagnosis, format_factor

ADD = "add the missing term"
ENOUGH = 5  # elements that a form has to hold for, at both points together


def missing_term(case: Case) -> Diagnosis | None:
    if case.fresh is None or len(case.evidence.columns) < 2:
        return None
    if len(case.evidence.rows) * len(case.evidence.columns) > 250_000:
        return None
    terms = (unused_output, _entries, _constant, missing_local_term, _rowwise, _of_sums)
    return next(filter(None, (term(case) for term in terms)), None)


def unused_output(case: Case) -> Diagnosis | None:
    """The upstream gradients of some of the outputs are not used."""
    every = [jacobian_blocks(each) for each in case.points]
    if not all(len(s) > 1 for s in every):
        return None
    unused = [s.output.name for s in every[0] if s.is_wrong and not np.any(s.rule)]
    wrong = [s.output.name for s in every[0] if s.is_wrong]
    if not unused or wrong != unused:
        return None
    names = " and ".join(unused)
    return Diagnosis(
        "dropped term",
        f"the upstream gradient of {names} is not used",
        f"add the term with the upstream gradient of {names}",
    )


def _entries(case: Case) -> Diagnosis | None:
    """Some of the outputs' contributions are missing, the others are right."""
    for found in case.points:
        kept = np.abs(found.missing) <= found.margin
        nothing = found.matrix == 0
        if not np.all(kept | nothing):
            return None
        gone = ~kept & nothing
        if not np.any(gone) or not np.any(kept & ~nothing):
            return None
    return Diagnosis(
        "dropped term",
        "some of the contributions to the gradient are right and the others missing",
        ADD,
    )


def _constant(case: Case) -> Diagnosis | None:
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
    c = _times(float(values[0])) if np.ptp(values) < 1e-6 else "constant times "
    where = "" if values.size == here.truth.any(0).sum() else ", for some elements"
    return Diagnosis("dropped term", f"the term {c}dy is missing{where}", ADD)


def missing_local_term(case: Case) -> Diagnosis | None:
    """c f dy, for one candidate factor f."""
    tables = [_table(found) for found in case.points]
    if any(table is None for table in tables):
        return None
    (d, margin, named), (d2, margin2, named2) = tables  # type: ignore[misc]
    if not np.any(np.abs(d) > margin):
        return None
    if np.sum(np.abs(d) > margin) + np.sum(np.abs(d2) > margin2) < ENOUGH:
        return None
    for name, f, f2 in _common(named, named2):
        c = float(d @ f) / float(f @ f)
        if np.all(np.abs(d - c * f) <= margin + 1e-9 * np.abs(d)) and np.all(
            np.abs(d2 - c * f2) <= margin2 + 1e-9 * np.abs(d2)
        ):
            term = _times(c) + ("dy" if name == "1" else f"{name} dy")
            what = (
                ", where the rule's own factor of dy is g"
                if re.search(r"\bg\b", name)
                else ""
            )
            message = f"the term {term} is missing{what}"
            return Diagnosis("dropped term", message, f"add {term}")
    return None


def _times(c: float) -> str:
    named = format_factor(c)
    return {"1": "", "-1": "-"}.get(named, f"{named} ")


def _common(a: list[Named], b: list[Named]) -> Iterator[tuple]:
    """The factors that there are at both points."""
    others = dict(b)
    for name, f in a:
        f2 = others.get(name)
        if f2 is not None and np.all(np.isfinite(f)) and np.any(f):
            yield name, f, f2


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

    named = candidate_factors(found, np.array(pick(found.matrix)))
    return np.array(pick(found.missing)), np.array(pick(found.margin)), named


def _rowwise(case: Case) -> Diagnosis | None:
    """c f dy with a number c of its own for each output."""
    here, there = case.points
    if here.truth.shape[0] * 3 > here.truth.shape[1]:
        return None
    for name, f, f2 in _common(candidate_factors(here), candidate_factors(there)):
        if _proportional(here, f) and _proportional(there, f2):
            return Diagnosis(
                "dropped term",
                f"a term {name} dy is missing, with a factor that each output has",
                ADD,
            )
    return None


def _proportional(found: Evidence, f: np.ndarray) -> bool:
    """Whether the missing part of each output is a multiple of f, where it has any."""
    for d, margin in zip(found.missing, found.margin, strict=True):
        active = np.abs(d) > margin
        if not np.any(active):
            continue
        own, size = f[active], float(f[active] @ f[active])
        if active.sum() < 3 or not np.all(np.isfinite(own)) or size == 0:
            return False
        c = float(d[active] @ own) / size
        if np.any(
            np.abs(d[active] - c * own) > 2 * margin[active] + 1e-9 * np.abs(c * own)
        ):
            return False
    return True


def _of_sums(case: Case) -> Diagnosis | None:
    """A sum over a row of outputs, times anything."""
    here, there = case.points
    if _per_element(here):
        return None
    pairs = zip(candidate_weights(here), candidate_weights(there), strict=False)
    for (name, a), (_, b) in pairs:
        # At a point where some outputs have not settled there are none.
        both = zip(_blocks(here), _blocks(there), strict=False)
        for (axis, blocks), (_, others) in both:
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
    outputs = found.point.linearization.outputs.parts
    if len(outputs) != 1 or len(found.rows) != found.point.y.size:
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
        if not np.any(left):
            return False  # no multiple of it explains anything
        row = left @ d / (left @ left)
        if np.any(
            np.abs(d - np.outer(left, row)) > 2 * margin.max(0) + 1e-9 * np.abs(d)
        ):
            return False
        active = np.any(np.abs(d) > margin, axis=0)
        data += int(active.sum()) * len(rows)
        spent += int(active.sum())
    return data >= 2 * spent and data > 3


def _of_sum(case: Case, name: str, axis: str, blocks: list[np.ndarray]) -> Diagnosis:
    """The term is missing, or has another factor."""
    found = case.evidence
    c = _factor_of_coupling(found, blocks)
    what = f"the term with sum({name}{axis})"
    if c is None:
        return Diagnosis("dropped term", f"{what} is missing", "add the missing term")
    length = len(blocks[0])
    if abs(c * length - 1) < 1e-6:
        return Diagnosis(
            "mean for sum", f"{what} has a mean instead", "use the sum there"
        )
    name = "sign of one term" if abs(c + 1) < 1e-6 else "factor of one term"
    by = format_factor(c)
    return Diagnosis(
        name, f"{what} is {by} times what it should be", f"divide it by {by}"
    )


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
