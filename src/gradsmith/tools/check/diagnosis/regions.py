"""Wrong in a region alone: for some values of the argument, or some places in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .answer import Answer
from .border import mirrored, refined
from .case import Case
from .evidence import Evidence
from .places import pattern, places

TINY = 1e-5  # of the distance to the next value: this one alone


@dataclass(frozen=True)
class Samples:
    """Values of elements, and whether their gradient was wrong (1) or right (-1)."""

    values: np.ndarray
    states: np.ndarray

    @property
    def wrong(self) -> np.ndarray:
        return self.values[self.states > 0]

    @property
    def right(self) -> np.ndarray:
        return self.values[self.states < 0]


def region(case: Case) -> Answer | None:
    """The region, if there is one: found at some points, verified at others."""
    looked = [(e, case.states(e)) for e in case.witnesses]
    if not any(np.any(states < 0) for _, states in looked):
        return None
    looked += [(e, case.states(e)) for e in _more(case)]
    if not any(np.any(states > 0) for _, states in looked):
        return None
    looked = smooth(looked)
    return _by_place(case, looked) or _by_ties(case, looked) or _by_value(case, looked)


def smooth(looked: list[tuple[Evidence, np.ndarray]]) -> list[Any]:
    """Without what is at a kink, unless that is all that is wrong.

    There, each of the one-sided derivatives would be right as well.
    """
    plain = [(e, np.where(np.any(e.kinks, axis=0), 0, states)) for e, states in looked]
    return plain if any(np.any(states > 0) for _, states in plain) else looked


def _more(case: Case) -> Iterator[Evidence]:
    """The same values at other places, and other values of the same signs."""
    for change in (case.shuffled, case.scaled):
        found = case.looked(change(case.ground.x))
        if found is not None:
            yield found


# --- the same elements, whatever their values


def _by_place(case: Case, looked: list[tuple[Evidence, np.ndarray]]) -> Answer | None:
    states = np.array([s for _, s in looked])
    if len(states) < 2 or states.shape[1] != case.part.size:
        return None
    wrong, right = np.any(states > 0, axis=0), np.any(states < 0, axis=0)
    if np.any(wrong & right) or case.part.size < 3:
        return None
    where = pattern(case.part, wrong)
    if wrong.sum() == 1:
        where = places(case.part, wrong)
    if where is None or not np.any(right):
        return None
    return Answer("region", _words(case, where), f"look at how {where} is computed")


def _words(case: Case, where: str) -> str:
    return (
        f"the gradient of {case.part.name} is wrong {_at(where)}, and right elsewhere"
    )


def _at(where: str) -> str:
    return where if where.startswith(("from", "up to")) else f"at {where}"


# --- where elements are equal


def _by_ties(case: Case, looked: list[tuple[Evidence, np.ndarray]]) -> Answer | None:
    (here, states), others = looked[0], looked[1:]
    values = here.ground.x[here.columns]
    tied = _tied(case, values)
    wrong = states > 0
    if not np.any(wrong) or np.any(wrong & ~tied):
        return None
    if any(np.any(s > 0) for _, s in others):
        return None
    shifted = case.looked(case.ground.x + 0.4375)  # the ties stay, the values change
    if shifted is None or not np.any(case.states(shifted) > 0):
        return None
    return Answer(
        "ties counted twice" if _too_much(case) else "region",
        _words(case, "ties").replace("at ties", "at ties, where elements are equal"),
        "share the gradient among the elements that are equal, or give it to one",
    )


def _tied(case: Case, values: np.ndarray) -> np.ndarray:
    every = case.ground.x
    return np.array([np.sum(every == v) > 1 for v in values])


def _too_much(case: Case) -> bool:
    """Whether the whole of a gradient is more than the derivative along ones."""
    found = case.evidence
    u = np.ones(len(found.rows))
    return float(np.sum(np.abs(found.rule(u)))) > float(np.sum(np.abs(found.right(u))))


# --- some values


def _by_value(case: Case, looked: list[tuple[Evidence, np.ndarray]]) -> Answer | None:
    if case.part.is_complex:
        return None
    samples = Samples(
        np.concatenate([e.ground.x[e.columns] for e, _ in looked]),
        np.concatenate([s for _, s in looked]),
    )
    name = case.part.name
    for distance, value_at, words in _measures(samples, name):
        where = _separated(case, samples, distance, value_at, words)
        if where:
            return Answer(
                "region",
                f"the gradient of {name} is wrong {where}, and right elsewhere",
                f"look at what the rule does {where}",
            )
    return None


Distance = Callable[[np.ndarray], np.ndarray]


def _measures(samples: Samples, name: str) -> Iterator[tuple]:
    """What the border may be of: x itself, its magnitude, how far it is from a value.

    Each with the value at a distance, and words for below, above and nothing at all.
    """
    plain = (f"where {name} < {{}}", f"where {name} > {{}}", "")
    yield (lambda x: x), (lambda d: d), plain
    sign = -1.0 if np.mean(samples.values < 0) > 0.5 else 1.0
    size = (f"where |{name}| < {{}}", f"where |{name}| > {{}}", f"at {name} = 0")
    yield np.abs, (lambda d: sign * d), size
    values = np.unique(samples.wrong)
    if len(values) == 1 and values[0] != 0:
        v = float(values[0])
        near = (f"within {{}} of {name} = {v:.6g}", "", f"at {name} = {v:.6g}")
        yield (lambda x: np.abs(x - v)), (lambda d: v + d), near


def _separated(
    case: Case,
    samples: Samples,
    distance: Distance,
    value_at: Callable[[float], float],
    words: tuple[str, str, str],
) -> str | None:
    wrong, right = distance(samples.wrong), distance(samples.right)
    below, above, alone = words
    if wrong.max() < right.min():
        ends, side = (wrong.max(), right.min()), below
    elif wrong.min() > right.max() and above:
        ends, side = (wrong.min(), right.max()), above
    else:
        return None
    border = refined(case, *ends, value_at)
    if border is None:
        return None
    if alone and ends[0] == 0 and border.right < TINY * ends[1]:
        return alone
    if not alone and border.between != "0" and mirrored(case, border):
        return None  # it is a matter of magnitude
    return side.format(border.between)
