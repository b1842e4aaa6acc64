"""The border between the values where a gradient is right and where it is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, log10

import numpy as np

from .case import Case

ROUNDS = 5
AT_ONCE = 8
DIGITS = 0.005  # two to three significant ones


@dataclass(frozen=True)
class Border:
    """Wrong at one distance and no more at another, with nothing known in between."""

    wrong: float
    right: float

    @property
    def between(self) -> str:
        return simplest(min(self.wrong, self.right), max(self.wrong, self.right))


def refined(
    case: Case, wrong: float, right: float, value_at: Callable[[float], float]
) -> Border | None:
    """Move elements to values in between until the border is known to some digits.

    `value_at` gives the value of the argument at a distance. None if the states on the
    two sides are not what a border makes them.
    """
    columns = _informative(case)
    for _ in range(ROUNDS):
        if _close(wrong, right):
            break
        between = _sections(wrong, right, len(columns))
        states = _states(case, columns, [value_at(d) for d in between])
        if states is None:
            return None
        known = states != 0
        order = np.sign(states[known])  # wrong ones first, then the right ones
        if not order.size or np.any(np.diff(order) > 0):
            return None
        if np.any(order > 0):
            wrong = float(between[known][order > 0][-1])
        if np.any(order < 0):
            right = float(between[known][order < 0][0])
    found = Border(wrong, right)
    return found if _confirmed(case, columns, found, value_at) else None


def _confirmed(
    case: Case, columns: np.ndarray, found: Border, value_at: Callable[[float], float]
) -> bool:
    """Whether other values on the two sides are wrong and right as well."""
    seen: set[int] = set()
    out = found.wrong - found.right
    for odd in (0, 1):
        wrong = np.arange(len(columns)) % 2 == odd
        away = case.random.uniform(0.0, 1.0, len(columns)) * out
        at_wrong = found.wrong + (away if found.wrong else 0.0)
        distances = np.where(wrong, at_wrong, found.right - away)
        states = _states(case, columns, [value_at(d) for d in distances])
        if states is None or np.any(states * np.where(wrong, 1, -1) < 0):
            return False
        seen |= set(states.tolist())
    return {-1, 1} <= seen


def _close(wrong: float, right: float) -> bool:
    if wrong * right <= 0:
        return False
    return abs(wrong - right) <= DIGITS * max(abs(wrong), abs(right))


def _sections(wrong: float, right: float, count: int) -> np.ndarray:
    """Values between, from the wrong side; by magnitude if they differ much."""
    if wrong == 0 or (wrong * right > 0 and not 0.25 < wrong / right < 4):
        low = wrong or right * 1e-8
        return np.geomspace(low, right, count + 2)[0 if wrong == 0 else 1 : -1][:count]
    if right == 0:
        return np.geomspace(wrong, wrong * 1e-8, count + 1)[1:]
    return np.linspace(wrong, right, count + 2)[1:-1]


def _informative(case: Case) -> np.ndarray:
    found = case.evidence
    states = found.states(case.random, tries=1)
    some = found.columns[states != 0]
    return case.random.permutation(some)[:AT_ONCE]


def _states(case: Case, columns: np.ndarray, values: list[float]) -> np.ndarray | None:
    """Wrong or right with these values of these elements."""
    x = case.ground.x.copy()
    x[columns] = values
    ground = case.moved(x)
    if ground is None:
        return None
    found = case.look(ground, columns)
    return found.states(case.random, tries=2) if len(found.rows) else None


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
