"""A diagnosis, which is stated only after it was verified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..problem import Unclipped
from .case import Case
from .evidence import ROUNDING, Evidence

TRIES = 3
DECLARE = "declare it"  # the report says how

# For evidence and an upstream u, two gradients that are equal if the diagnosis holds:
# the repaired one and the true one, or the rule's and the wrong one that is expected.
Pair = Callable[[Evidence, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Diagnosis:
    """What is wrong, in a name and in words, and what to do about it."""

    name: str
    message: str
    repair: str
    pair: Pair | None = None  # None: verified already
    unclipped: Unclipped | None = None  # how to compare the rest of a rule that clips


def verified(diagnosis: Diagnosis, case: Case) -> bool:
    """Whether it holds for fresh upstream gradients, here and at another point."""
    return all(_holds(diagnosis, each, case.random) for each in case.witnesses)


def _holds(diagnosis: Diagnosis, found: Evidence, random: np.random.Generator) -> bool:
    assert diagnosis.pair is not None
    for _ in range(TRIES):
        u = found.upstream(random)
        with np.errstate(all="ignore"):
            a, b = diagnosis.pair(found, u)
            least = found.tolerance(u) + ROUNDING * found.point.flat.eps * np.abs(a)
            if not np.all(np.abs(a - b) <= least):
                return False
    return True


def right_once(how: Callable[[np.ndarray], np.ndarray]) -> Pair:
    """The pair of a rule that is right once its gradient is changed."""
    return lambda found, u: (how(found.rule(u)), found.expected(u))


def format_factor(c: float) -> str:
    """A factor in words: a fraction of small integers, if it is one.

    >>> [format_factor(c) for c in (2.0, 0.25, 1 / 3, -0.123456)]
    ['2', '1/4', '1/3', '-0.123456']
    """
    near = Fraction(c).limit_denominator(64)
    plain = near.denominator < 10 or abs(near.numerator) == 1
    if near and plain and abs(c - near) < 1e-7 * abs(near) and abs(near) < 1000:
        return str(near)
    return f"{c:.6g}"


def parse_factor(named: str) -> float:
    """The number again.

    >>> parse_factor("1/4")
    0.25
    """
    return float(Fraction(named))
