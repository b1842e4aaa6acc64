"""Wrong only in a region: for some values of the argument, or some elements of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from .border import refine_border, wrong_beyond_zero
from .case import Case
from .evidence import Evidence
from .locate import describe_elements, describe_pattern
from .model import Diagnosis
from .simple import factor, sign, zero
from .terms import missing_local_term

TINY = 1e-5  # of the distance to the next value: this one alone

# Evidence at some points, with the states of the elements there
StatesAt = list[tuple[Evidence, np.ndarray]]


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


def region(case: Case) -> Diagnosis | None:
    """The region, if there is one: found at some points, verified at others."""
    states_at = [(e, case.states(e)) for e in case.witnesses]
    if not any(np.any(states < 0) for _, states in states_at):
        return None
    states_at += [(e, case.states(e)) for e in _more(case)]
    if not any(np.any(states > 0) for _, states in states_at):
        return None
    states_at = _smooth(states_at)
    return (
        _by_place(case, states_at)
        or _by_ties(case, states_at)
        or _by_value(case, states_at)
    )


def _smooth(states_at: StatesAt) -> StatesAt:
    """Without what is at a kink, unless that is all that is wrong.

    There, each of the one-sided derivatives would be right as well.
    """
    plain = [
        (e, np.where(np.any(e.kinks, axis=0), 0, states)) for e, states in states_at
    ]
    return plain if any(np.any(states > 0) for _, states in plain) else states_at


def _more(case: Case) -> Iterator[Evidence]:
    """The same values at other places, and other values of the same signs."""
    for change in (case.shuffled, case.scaled):
        found = case.evidence_at(change(case.point.x))
        if found is not None:
            yield found


# --- the same elements, whatever their values


def _by_place(case: Case, states_at: StatesAt) -> Diagnosis | None:
    states = np.array([s for _, s in states_at])
    if len(states) < 2 or states.shape[1] != case.part.size:
        return None
    wrong, right = np.any(states > 0, axis=0), np.any(states < 0, axis=0)
    if np.any(wrong & right) or case.part.size < 3:
        return None
    where = describe_pattern(case.part, wrong)
    if wrong.sum() == 1:
        where = describe_elements(case.part, wrong)
    if where is None or not np.any(right):
        return None
    return Diagnosis("region", _words(case, where), f"look at how {where} is computed")


def _words(case: Case, where: str) -> str:
    return (
        f"the gradient of {case.part.name} is wrong {_at(where)}, and right elsewhere"
    )


def _at(where: str) -> str:
    return where if where.startswith(("from", "up to")) else f"at {where}"


# --- where elements are equal


def _by_ties(case: Case, states_at: StatesAt) -> Diagnosis | None:
    (here, states), others = states_at[0], states_at[1:]
    values = here.point.x[here.columns]
    tied = _tied(case, values)
    wrong = states > 0
    if not np.any(wrong) or np.any(wrong & ~tied):
        return None
    if any(np.any(s > 0) for _, s in others):
        return None
    shifted = case.evidence_at(
        case.point.x + 0.4375
    )  # the ties stay, the values change
    if shifted is None or not np.any(case.states(shifted) > 0):
        return None
    return Diagnosis(
        "ties counted twice" if _too_much(case) else "region",
        _words(case, "ties").replace("at ties", "at ties, where elements are equal"),
        "share the gradient among the elements that are equal, or give it to one",
    )


def _tied(case: Case, values: np.ndarray) -> np.ndarray:
    every = case.point.x
    return np.array([np.sum(every == v) > 1 for v in values])


def _too_much(case: Case) -> bool:
    """Whether the whole of a gradient is more than the derivative along ones."""
    found = case.evidence
    u = np.ones(len(found.rows))
    return float(np.sum(np.abs(found.rule(u)))) > float(
        np.sum(np.abs(found.expected(u)))
    )


# --- some values


def _by_value(case: Case, states_at: StatesAt) -> Diagnosis | None:
    if case.part.is_complex:
        return None
    samples = Samples(
        np.concatenate([e.point.x[e.columns] for e, _ in states_at]),
        np.concatenate([s for _, s in states_at]),
    )
    name = case.part.name
    for distance, value_at, words in _measures(samples, name):
        where = _separated(case, samples, distance, value_at, words)
        if where:
            return Diagnosis(
                "region",
                f"the gradient of {name} is wrong {where}, and right elsewhere",
                f"look at what the rule does {where}",
            )
    return None


Distance = Callable[[np.ndarray], np.ndarray]


def _measures(samples: Samples, name: str) -> Iterator[tuple]:
    """What the border may be of: x itself, its magnitude, how far it is from a value.

    Each with the value at a distance, and words for below, above and at it.
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
    border = refine_border(case, *ends, value_at)
    if border is None:
        return None
    if alone and ends[0] == 0 and border.right < TINY * ends[1]:
        return alone
    if not alone and border.between != "0" and wrong_beyond_zero(case, border):
        return None  # it is a matter of magnitude
    return side.format(border.between)


def wrong_at_kink(case: Case) -> Diagnosis | None:
    """Wrong at a kink: at ties, or at one value, and right around it."""
    if not np.any(case.evidence.kinks):
        return None
    near = case.evidence_at(case.near(case.point.x))
    if near is None or np.any(near.states(case.random) > 0):
        return None
    return region(case)


# --- what is wrong inside of a region


@dataclass(frozen=True)
class KnownCase(Case):
    """A case whose evidence is known."""

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


def name_region(case: Case, found: Diagnosis) -> Diagnosis:
    """The region with the mistake that is made there, if it has a name.

    A term that is missing there says more than the region does.
    """
    near = case.evidence_at(case.near(case.point.x))
    every = [*case.points, *([near] if near else [])]
    points = [_wrong_ones(case, each) for each in every]
    given = tuple(each for each in points if each is not None)[:2]
    if len(given) < 2:
        return found
    inside = KnownCase(
        case.point, case.part, case.random, case.sharp, case.elementwise, given
    )
    where = found.message.removesuffix(", and right elsewhere").rsplit("is wrong ")[-1]
    if len(inside.evidence.columns) == 1 and where.startswith("at element"):
        return one_element(inside, found)
    if diagnosis := zero(inside) or sign(inside) or factor(inside):
        return replace(found, message=f"{found.message}; there {diagnosis.message}")
    if diagnosis := missing_local_term(inside):
        return replace(diagnosis, message=f"{where}, {diagnosis.message}")
    return found


def one_element(inside: Case, found: Diagnosis) -> Diagnosis:
    """One element alone: its sign or its factor."""
    for name, mistake in (("sign", sign), ("zero", zero), ("factor", factor)):
        if diagnosis := mistake(inside):
            message = f"{found.message}; there {diagnosis.message}"
            return Diagnosis(f"{name} of one element", message, found.repair)
    return replace(found, name="one element")


def _wrong_ones(case: Case, found: Evidence) -> Evidence | None:
    ((_, states),) = _smooth([(found, found.states(case.random))])
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
