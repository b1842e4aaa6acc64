"""The border between the values where a gradient is right and where it is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, log10

import numpy as np

from .case import Case

ROUNDS = 5
AT_ONCE, FEWER = 8, 4
DIGITS = 0.005  # two to three significant ones
NOTHING = 1e-5


@dataclass(frozen=True)
class Border:
    """Wrong at one distance and no more at another, with nothing known in between."""

    wrong: float
    right: float

    @property
    def between(self) -> str:
        return simplest(min(self.wrong, self.right), max(self.wrong, self.right))


Values = Callable[[float], float]  # the argument's value at a distance
States = Callable[[list[float]], "np.ndarray | None"]  # wrong or right with these


def refine_border(
    case: Case, wrong: float, right: float, value_at: Values
) -> Border | None:
    """Move elements to values in between until the border is known to some digits.

    None if the states on the two sides are not what a border makes them. Elements are
    moved on their own; if they don't matter any more then (no longer the largest of a
    row), with all others.
    """
    found = case.evidence
    some = found.columns[case.states(found, tries=1) != 0]
    columns = case.random.permutation(some)
    for count, move in ((AT_ONCE, _alone), (FEWER, _with_others)):
        chosen = columns[:count]
        border = _searched(case, chosen, wrong, right, move(case, chosen), value_at)
        if border is not None:
            return border
    return None


def wrong_beyond_zero(case: Case, border: Border) -> bool:
    """Whether the gradient is wrong on the other side of zero too."""
    found = case.evidence
    some = found.columns[case.states(found, tries=1) != 0][:FEWER]
    far = border.wrong + (border.wrong - border.right)
    states = _alone(case, some)([-far] * len(some))
    return states is not None and bool(np.any(states > 0))


def _searched(
    case: Case,
    columns: np.ndarray,
    wrong: float,
    right: float,
    states_of: States,
    value_at: Values,
) -> Border | None:
    typical = float(np.median(case.point.scale[columns]))
    for _ in range(ROUNDS):
        if _close(wrong, right, typical):
            break
        between = _sections(wrong, right, len(columns))
        states = states_of([value_at(d) for d in between])
        if states is None:
            return None
        known = states != 0
        order = states[known]  # wrong ones first, then the right ones
        if not order.size or np.any(np.diff(order) > 0):
            return None
        if np.any(order > 0):
            wrong = float(between[known][order > 0][-1])
        if np.any(order < 0):
            right = float(between[known][order < 0][0])
    found = Border(wrong, right)
    return found if _confirmed(case, len(columns), found, states_of, value_at) else None


def _confirmed(
    case: Case, count: int, found: Border, states_of: States, value_at: Values
) -> bool:
    """Whether other values on the two sides are wrong and right as well."""
    seen: set[int] = set()
    out = found.wrong - found.right
    for odd in (0, 1):
        wrong = np.arange(count) % 2 == odd
        away = case.random.uniform(0.0, 1.0, count) * out
        at_wrong = found.wrong + (away if found.wrong else 0.0)
        distances = np.where(wrong, at_wrong, found.right - away)
        states = states_of([value_at(d) for d in distances])
        if states is None or np.any(states * np.where(wrong, 1, -1) < 0):
            return False
        seen |= set(states.tolist())
    return {-1, 1} <= seen


def _close(wrong: float, right: float, typical: float) -> bool:
    gap = abs(wrong - right)
    if right == 0:  # so close to it nothing else can be told
        return gap <= NOTHING * typical
    if wrong * right < 0:
        return gap <= DIGITS * typical
    return wrong * right > 0 and gap <= DIGITS * max(abs(wrong), abs(right))


def _sections(wrong: float, right: float, count: int) -> np.ndarray:
    """Values between, from the wrong side; by magnitude if they differ much."""
    if wrong == 0 or (wrong * right > 0 and not 0.25 < wrong / right < 4):
        low = wrong or right * 1e-8
        return np.geomspace(low, right, count + 2)[0 if wrong == 0 else 1 : -1][:count]
    if right == 0:
        return np.geomspace(wrong, wrong * 1e-8, count + 1)[1:]
    return np.linspace(wrong, right, count + 2)[1:-1]


def _alone(case: Case, columns: np.ndarray) -> States:
    """Give these elements values, and leave the others."""

    def states_of(values: list[float]) -> np.ndarray | None:
        x = case.point.x.copy()
        x[columns] = values
        found = case.evidence_at(x, columns)
        return None if found is None else case.states(found, tries=2)

    return states_of


def _with_others(case: Case, columns: np.ndarray) -> States:
    """Give one element after the other a value, and move all others as far."""

    def states_of(values: list[float]) -> np.ndarray | None:
        states = []
        for column, value in zip(columns, values, strict=True):
            x = case.point.x.copy()
            x[case.part.slice] += value - x[column]
            found = case.evidence_at(x, np.array([column]))
            states.append(0 if found is None else case.states(found, tries=2)[0])
        return np.array(states)

    return states_of


def simplest(low: float, high: float) -> str:
    """The number with the fewest digits between two others.

    >>> simplest(2.497, 2.503), simplest(-0.1, 0.2), simplest(0.00996, 0.0103)
    ('2.5', '0', '0.01')
    """
    if low <= 0 <= high:
        return "0"
    top = floor(log10(max(abs(low), abs(high))))
    for digits in range(8):
        unit = 10.0 ** (top - digits)
        nearest = round((low + high) / 2 / unit) * unit
        if low <= nearest <= high:
            return f"{nearest:.{digits + 1}g}"
    return f"{(low + high) / 2:.3g}"
