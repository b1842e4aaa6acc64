"""What is wrong inside of a region."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .answer import Answer
from .case import Case
from .evidence import Evidence
from .regions import smooth
from .simple import factor, sign, zero
from .terms import local


@dataclass(frozen=True)
class Known(Case):
    """A case of which all that is to be looked at is known."""

    given: tuple[Evidence, ...] = ()

    @property
    def evidence(self) -> Evidence:  # type: ignore[override]
        return self.given[0]

    @property
    def fresh(self) -> Evidence:  # type: ignore[override]
        return self.given[1]

    @property
    def witnesses(self) -> list[Evidence]:  # type: ignore[override]
        return list(self.given)


def within(case: Case, found: Answer) -> Answer:
    """The region with the mistake that is made there, if it has a name.

    A term that is missing there says more than the region does.
    """
    near = case.looked(case.near(case.ground.x))
    every = [*case.points, *([near] if near else [])]
    points = [_wrong_ones(case, each) for each in every]
    given = tuple(each for each in points if each is not None)[:2]
    if len(given) < 2:
        return found
    inside = Known(
        case.ground, case.part, case.random, case.sharp, case.elementwise, given
    )
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
    ((_, states),) = smooth([(found, found.states(case.random))])
    chosen = np.flatnonzero(states > 0)
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
