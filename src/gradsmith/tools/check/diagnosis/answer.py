"""A diagnosis, which is stated only after it was verified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .case import Case
from .evidence import ROUNDING, Evidence

TRIES = 3

# For evidence and an upstream u, two gradients that are equal if the diagnosis holds:
# the repaired one and the true one, or the rule's and the wrong one that is expected.
Pair = Callable[[Evidence, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Answer:
    """What is wrong, in a name and in words, and what to do about it."""

    name: str
    message: str
    repair: str
    pair: Pair | None = None  # None: verified by the one who gives it


def verified(answer: Answer, case: Case, *, size: float = 1.0) -> bool:
    """Whether it holds for fresh upstream gradients, here and at another point."""
    return all(holds(answer, each, case.random, size=size) for each in case.witnesses)


def holds(
    answer: Answer, found: Evidence, random: np.random.Generator, *, size: float = 1.0
) -> bool:
    assert answer.pair is not None
    for _ in range(TRIES):
        u = found.upstream(random, size=size)
        with np.errstate(all="ignore"):
            a, b = answer.pair(found, u)
            least = found.tolerance(u) + ROUNDING * found.ground.flat.eps * np.abs(a)
            if not np.all(np.abs(a - b) <= least):
                return False
    return True


def mended(how: Callable[[np.ndarray], np.ndarray]) -> Pair:
    """The pair of a rule that is right once its gradient is changed."""
    return lambda found, u: (how(found.rule(u)), found.right(u))


def expected(how: Callable[[np.ndarray], np.ndarray]) -> Pair:
    """The pair of a rule that is right for a changed upstream gradient."""
    return lambda found, u: (found.rule(u), found.right(how(u)))


def number(c: float) -> str:
    """A factor in words: a fraction of small whole numbers, if it is one.

    >>> number(2.0), number(0.25), number(1 / 3), number(-0.123456)
    ('2', '1/4', '1/3', '-0.123456')
    """
    near = Fraction(c).limit_denominator(64)
    plain = near.denominator < 10 or abs(near.numerator) == 1
    if near and plain and abs(c - near) < 1e-7 * abs(near) and abs(near) < 1000:
        return str(near)
    return f"{c:.6g}"


def value(named: str) -> float:
    """The number again.

    >>> value("1/4")
    0.25
    """
    return float(Fraction(named))
