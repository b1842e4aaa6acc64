"""What is wrong inside of a region."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .answer import Answer
from .case import Case, Known
from .evidence import Evidence
from .simple import factor, sign, zero
from .terms import local


def within(case: Case, found: Answer) -> Answer:
    """The region with the mistake that is made there, if it has a name.

    A term that is missing there says more than the region does.
    """
    points = [_wrong_ones(case, each) for each in case.points]
    given = tuple(each for each in points if each is not None)
    if len(given) < 2:
        return found
    inside = Known(case.ground, case.part, case.random, case.sharp, given)
    where = found.message.removesuffix(", and right elsewhere").rsplit("is wrong ")[-1]
    if len(inside.evidence.columns) == 1 and where.startswith("at element"):
        return one_element(inside, found)
    if answer := zero(inside) or sign(inside) or factor(inside):
        return replace(found, message=f"{found.message}; there {answer.message}")
    if answer := local(inside):
        return replace(answer, message=f"{where}, {answer.message}")
    return found


def one_element(inside: Case, found: Answer) -> Answer:
    """One element alone: its sign or its factor."""
    for name, look in (("sign", sign), ("zero", zero), ("factor", factor)):
        if answer := look(inside):
            message = f"{found.message}; there {answer.message}"
            return Answer(f"{name} of one element", message, found.repair)
    return replace(found, name="one element")


def _wrong_ones(case: Case, found: Evidence) -> Evidence | None:
    chosen = np.flatnonzero(found.states(case.random) > 0)
    if not chosen.size:
        return None
    rows = np.flatnonzero(np.any(found.truth[:, chosen] != 0, axis=1))
    if case.elementwise:
        found = found.of_rows(rows)
    return replace(
        found,
        columns=found.columns[chosen],
        truth=found.truth[:, chosen],
        error=found.error[:, chosen],
        kinks=found.kinks[:, chosen],
    )
