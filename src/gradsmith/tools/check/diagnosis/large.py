"""Large arguments: all elements are located, the mistake is diagnosed on a few.

That is on a small problem like the large one, or on some of the elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ..flat import flatten
from ..point import Point
from ..sizes import cropped, lengths_of
from .case import Case
from .evidence import Evidence, gather_evidence
from .locate import (
    GroupComparison,
    Location,
    describe_elements,
    elementwise_flags,
    locate,
)
from .model import Diagnosis
from .regions import KnownCase, one_element

CHOSEN = 32
ROWS = 500
SHORT = 4  # axes up to this length stay; others become a little longer than this

Diagnose = Callable[[Case], Diagnosis | None]


def diagnose_large(
    case: Case, diagnose: Diagnose
) -> tuple[str | None, Diagnosis | None]:
    """Where a large argument is wrong, and what the mistake is."""
    location = locate(case)
    found = _by_place(case, location)
    if found is None and (small := _shrunk(case)) is not None:
        found = diagnose(small)
    if found is None and location.wrong.size:
        found = diagnose(_some(case, location))
    return location.words, found


def _by_place(case: Case, found: Location) -> Diagnosis | None:
    """The same elements are wrong whatever their values."""
    one = found.wrong.size == 1
    if not one and not found.first:
        return None
    point = case.point_at(case.shuffled(case.point.x))
    if point is None or not _still(case, point, found):
        return None
    where = found.words or describe_elements(case.part, np.ones(case.part.size, bool))
    at = "" if str(where).startswith("from") else "at "
    found_there = Diagnosis(
        "one element" if one else "region",
        f"the gradient of {case.part.name} is wrong {at}{where}, and right elsewhere",
        f"look at how the gradient {at}{where} is computed",
    )
    if not one:
        return found_there
    some = _with(case, found.wrong)
    given = (some.evidence, some.gather(point))
    there = KnownCase(
        case.point, case.part, case.random, case.sharp, case.elementwise, given
    )
    return one_element(there, found_there)


def _still(case: Case, point: Point, found: Location) -> bool:
    first = int(found.wrong[0]) - case.part.start
    begin = first if found.first is None else found.first
    if case.elementwise:
        wrong, some = elementwise_flags(case, point)
        after = slice(begin, None if found.first is not None else begin + 1)
        right = (some & ~wrong)[after]
        return not np.any(wrong[:begin]) and bool(np.any(wrong)) and not np.any(right)
    groups = GroupComparison(case, point)
    before = begin > 0 and groups.state(0, begin, quick=True) > 0
    end = case.part.size if found.first is not None else begin + 1
    return not before and groups.state(begin, end, quick=True) > 0


def _shrunk(case: Case) -> Case | None:
    """The case with short axes, if the operation takes them and is wrong there too.

    Axes of the same length stay so, and those of different ones too.
    """
    problem = case.point.flat.problem.with_perturbed(
        case.point.flat.arguments.arrays(case.point.x)
    )
    lengths = [n for n in lengths_of(problem) if n > SHORT]
    if not lengths:
        return None
    short = {n: min(n, SHORT + k) for k, n in enumerate(lengths)}
    try:
        small = flatten(cropped(problem, short))
        point = Point(small, case.random)
        parts = case.point.flat.arguments.parts
        part = small.arguments.parts[parts.index(case.part)]
        found = replace(case, point=point, part=part)
        if not found.is_small or not np.all(np.isfinite(point.y)):
            return None
        wrong = np.any(found.evidence.states(case.random) > 0)
    except Exception:  # the operation's own: it doesn't take these shapes
        return None
    return found if wrong else None


def _some(case: Case, found: Location) -> Case:
    wrong = case.random.permutation(found.wrong)[:CHOSEN]
    right = case.random.permutation(found.right)[:CHOSEN]
    columns = np.sort(np.concatenate([wrong, right]))
    return _with(case, columns)


def _with(case: Case, columns: np.ndarray) -> PartialCase:
    return PartialCase(
        case.point, case.part, case.random, case.sharp, case.elementwise, columns
    )


@dataclass(frozen=True)
class PartialCase(Case):
    """A case with evidence for some of the elements."""

    columns: np.ndarray | None = None

    def gather(self, point: Point, columns: np.ndarray | None = None) -> Evidence:
        columns = self.columns if columns is None else columns
        assert columns is not None
        own = np.sort(columns) - self.part.start if self.elementwise else None
        return gather_evidence(
            point,
            self.part,
            columns=columns,
            rows=self._rows if own is None else own,
            elementwise=self.elementwise,
            sharp=self.sharp,
        )

    @cached_property
    def _rows(self) -> np.ndarray:
        """Outputs that depend on the elements, not too many of them."""
        x = self.point.x.copy()
        x[self.columns] += 2.0**-7 * self.point.scale[self.columns]
        moved = np.flatnonzero(self.point.flat.value(x) != self.point.y)
        return np.sort(self.random.permutation(moved)[:ROWS])
