"""A term that is missing: the difference to the truth has a form of its own.

Each form is fitted at one point and has to hold at another too:

    dropped entries    the rule is right or zero, element by element
    a constant         the difference is the same at both points
    c f(x, y, ...)     times dy: a factor of the dictionary, the same c at both points
    <dy, a> b          a sum over outputs, with a of the dictionary (sums.py)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from .answer import Answer, number
from .case import Case
from .dictionary import Named, factors
from .evidence import Evidence
from .structure import structures
from .sums import reduced

ADD = "add the missing term"
ENOUGH = 5  # elements that a form has to hold for, at both points together


def dropped(case: Case) -> Answer | None:
    if case.fresh is None or len(case.evidence.columns) < 2:
        return None
    if len(case.evidence.rows) * len(case.evidence.columns) > 250_000:
        return None
    for look in (unused_output, _entries, _constant, local, _rowwise, reduced):
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
    c = _times(float(values[0])) if np.ptp(values) < 1e-6 else "constant times "
    where = "" if values.size == here.truth.any(0).sum() else ", for some elements"
    return Answer("dropped term", f"the term {c}dy is missing{where}", ADD)


def local(case: Case) -> Answer | None:
    """c f dy, for one factor f of the dictionary."""
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
            return Answer("dropped term", message, f"add {term}")
    return None


def _times(c: float) -> str:
    named = number(c)
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

    named = factors(found, np.array(pick(found.matrix)))
    return np.array(pick(found.missing)), np.array(pick(found.margin)), named


def _rowwise(case: Case) -> Answer | None:
    """c f dy with a number c of its own for each output."""
    here, there = case.points
    if here.truth.shape[0] * 3 > here.truth.shape[1]:
        return None
    for name, f, f2 in _common(factors(here), factors(there)):
        if _proportional(here, f) and _proportional(there, f2):
            return Answer(
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
