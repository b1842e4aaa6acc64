"""Large arguments: located in full, named on a small problem or on some elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..first import Ground
from .answer import Answer
from .at_once import flags_at_once
from .case import Case
from .evidence import Evidence
from .gather import gather
from .locate import Location, Probe, locate
from .places import places
from .shrink import shrunk
from .special import not_finite, not_the_same
from .within import Known, one_element

CHOSEN = 32
ROWS = 500

Diagnosis = Callable[[Case], Answer | None]


def examine(case: Case, diagnosis: Diagnosis) -> tuple[str | None, Answer | None]:
    """Where a large argument is wrong, and what the mistake is."""
    early = not_finite(case) or not_the_same(case)
    if early is not None:
        return None, early
    found = locate(case)
    by_place = _by_place(case, found)
    if by_place is not None:
        return found.words, by_place
    small = shrunk(case)
    answer = diagnosis(small) if small is not None else None
    if answer is None and found.wrong.size:
        answer = diagnosis(_some(case, found))
    return found.words, answer


def _by_place(case: Case, found: Location) -> Answer | None:
    """The same elements are wrong whatever their values."""
    one = found.wrong.size == 1
    if not one and not found.first:
        return None
    ground = case.moved(case.shuffled(case.ground.x))
    if ground is None or not _still(case, ground, found):
        return None
    where = found.words or places(case.part, np.ones(case.part.size, bool))
    at = "" if str(where).startswith("from") else "at "
    found_there = Answer(
        "one element" if one else "region",
        f"the gradient of {case.part.name} is wrong {at}{where}, and right elsewhere",
        f"look at how the gradient {at}{where} is computed",
    )
    if not one:
        return found_there
    some = _with(case, found.wrong)
    given = (some.evidence, some.look(ground))
    there = Known(
        case.ground, case.part, case.random, case.sharp, case.elementwise, given
    )
    return one_element(there, found_there)


def _still(case: Case, ground: Ground, found: Location) -> bool:
    first = int(found.wrong[0]) - case.part.start
    begin = first if found.first is None else found.first
    if case.elementwise:
        wrong, some = flags_at_once(case, ground)
        after = slice(begin, None if found.first is not None else begin + 1)
        right = (some & ~wrong)[after]
        return not np.any(wrong[:begin]) and bool(np.any(wrong)) and not np.any(right)
    probe = Probe(case, ground)
    before = begin > 0 and probe.state(0, begin, quick=True) > 0
    end = case.part.size if found.first is not None else begin + 1
    return not before and probe.state(begin, end, quick=True) > 0


def _some(case: Case, found: Location) -> Case:
    wrong = case.random.permutation(found.wrong)[:CHOSEN]
    right = case.random.permutation(found.right)[:CHOSEN]
    columns = np.sort(np.concatenate([wrong, right]))
    return _with(case, columns)


def _with(case: Case, columns: np.ndarray) -> Some:
    return Some(
        case.ground, case.part, case.random, case.sharp, case.elementwise, columns
    )


@dataclass(frozen=True)
class Some(Case):
    """A case that looks at some of the elements."""

    columns: np.ndarray | None = None

    def look(self, ground: Ground, columns: np.ndarray | None = None) -> Evidence:
        columns = self.columns if columns is None else columns
        assert columns is not None
        own = np.sort(columns) - self.part.start if self.elementwise else None
        return gather(
            ground,
            self.part,
            columns=columns,
            rows=self._rows if own is None else own,
            elementwise=self.elementwise,
            sharp=self.sharp,
        )

    @cached_property
    def _rows(self) -> np.ndarray:
        """Outputs that depend on the elements, not too many of them."""
        x = self.ground.x.copy()
        x[self.columns] += 2.0**-7 * self.ground.scale[self.columns]
        moved = np.flatnonzero(self.ground.flat.value(x) != self.ground.y)
        return np.sort(self.random.permutation(moved)[:ROWS])
