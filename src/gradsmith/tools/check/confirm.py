"""What looks wrong is looked at again, with fresh random numbers, before it is said.

Among many elements, those that look wrong are looked at on their own first: they are
few if the mistake is somewhere, and it costs little then.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .comparison import Test
from .first import MANY, SIGMAS, Ground
from .nearby import is_among_neighbours

STEPS = (0.09375, 0.0625, 0.109375, 0.078125)
# A small wave on something steep looks straight to steps as long as many of its waves.
SHORT = 2.0**-17


def confirmed(ground: Ground, test: Test) -> bool:
    """Whether a comparison is wrong with fresh directions and other steps too."""
    v = _suspects(ground, test)
    if v is not None and (fresh := _again(ground, replace(test, v=v))) is not None:
        return not is_among_neighbours(ground, fresh)
    if _again(ground, test) is None:
        return False
    return not is_among_neighbours(ground, test)


def _again(ground: Ground, test: Test) -> Test | None:
    """The last comparison, if all of them are wrong.

    They have to be by the same outputs: of many, some always look settled by chance.
    """
    among, last = (test.u != 0) & _alike(ground, test), None
    # Many elements are as good as many tries.
    for step in STEPS if ground.x.size < MANY else STEPS[:2]:
        wrong = [each for each in ground.again(test, step, among) if each.is_wrong]
        if not wrong:
            return None
        among &= np.any([each.u != 0 for each in wrong], axis=0)
        last = wrong[0]
    return last


def _alike(ground: Ground, test: Test) -> np.ndarray:
    """The outputs of which short steps don't say something else than long ones."""
    long, short = test.slope, ground.slope(test.v, SHORT)
    with np.errstate(all="ignore"):
        apart = np.maximum(short.low - long.high, long.low - short.high)
        return ~(apart > SIGMAS * (short.error + long.error))


def _suspects(ground: Ground, test: Test) -> np.ndarray | None:
    """The direction without the elements that look right; None if that is no less."""
    if ground.x.size < MANY or not ground.is_local:
        return None
    known = test.u != 0
    found = (test.slope.low, test.slope.high, test.slope.error)
    terms = test.terms[test.part.slice]
    one, two, error = (np.where(known, each, 0.0) * test.u for each in found)
    low, high = (
        _by_element(ends(one, two), terms) for ends in (np.minimum, np.maximum)
    )
    margin = SIGMAS * _by_element(np.abs(error), terms)
    wrong = np.maximum(low - terms, terms - high) > margin
    v = np.zeros_like(test.v)
    v[test.part.slice] = np.where(wrong, test.v[test.part.slice], 0.0)
    return v if ground.thin(v) is not None else None


def _by_element(y: np.ndarray, terms: np.ndarray) -> np.ndarray:
    """The sum over the outputs that belong to each element."""
    return np.sum(y.reshape(-1, terms.size), axis=0)
