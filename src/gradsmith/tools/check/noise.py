"""The rounding error of an operation's values, as it is and as differences show it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from .numerics import jittered
from .richardson import RATIO

BLOCK = 8
SAMPLE = 2**15
MANY = 10**5

# For each step, the differences to y on both sides
Pairs = list[tuple[float, tuple[np.ndarray, np.ndarray]]]


def noise_of(
    f: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    y: np.ndarray,
    *,
    eps: float,
    random: np.random.Generator,
) -> np.ndarray:
    """The rounding error of y = f(x): how y changes if the last digits of x change.

    It is at least a unit in the last place of y itself.
    """
    with np.errstate(all="ignore"):
        found = eps * np.abs(y)
        # Of many elements, others of the same magnitude show what one try misses.
        for _ in range(2 if x.size < MANY else 1):
            (other,) = jittered(random, [x], eps)
            moved = np.abs(f(other) - y)
            found = np.fmax(found, np.where(np.isfinite(moved), moved, 0.0))
    return found


def seen_noise(
    noise: np.ndarray, y: np.ndarray, pairs: Callable[[slice], Pairs]
) -> Callable[[slice, Pairs], np.ndarray]:
    """The noise of a part of y, given the differences there.

    Of many elements some seem free of noise by chance; in a block of them few do. So
    each noise is at least about that of outputs of the same magnitude.
    """
    if y.size > 2 * SAMPLE:
        some = slice(None, None, y.size // SAMPLE)
        usual = _usual(_seen(noise[some], pairs(some)), y[some])
        return lambda part, here: np.fmax(
            _seen(noise[part], here), 2 * usual[_power(y[part])]
        )
    known = _shared(_seen(noise, pairs(slice(None))), y)
    return lambda part, here: known[part]


def _seen(noise: np.ndarray, pairs: Pairs) -> np.ndarray:
    """The noise of y, from what the smallest steps leave of smoothness.

    The mean of both sides is c1 h^2 + c2 h^4, the slope f' + c1 h^2 + c2 h^4, as far as
    h^6 is nothing; both are known from a few steps, and others have to agree.
    """
    means = [(p + m) / 2 for _, (p, m) in pairs[-3:]]
    slopes = [(p - m) / (2 * h) for h, (p, m) in pairs[-4:]]
    once = [b - a / RATIO**2 for a, b in pairwise(means)]
    noise = np.fmax(noise, np.abs(once[1] - once[0] / RATIO**4))
    smooth = [b + (b - a) / (RATIO**2 - 1) for a, b in pairwise(slopes)]
    smooth = [b + (b - a) / (RATIO**4 - 1) for a, b in pairwise(smooth)]
    return np.fmax(noise, np.abs(smooth[-1] - smooth[0]) * pairs[-1][0])


def _shared(noise: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Each noise, and at least that of a block of outputs of the same magnitude."""
    if y.size < BLOCK:
        return noise
    order = np.argsort(np.abs(y))
    blocks = np.resize(noise[order], (-(-y.size // BLOCK), BLOCK))
    usual = np.repeat(np.median(blocks, axis=1), BLOCK)[: y.size]
    shared = np.empty_like(noise)
    shared[order] = 2 * usual
    return np.fmax(noise, shared)


def _usual(noise: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The median noise between one power of two and the next."""
    power, usual = _power(y), np.zeros(199)
    for k in np.unique(power):
        usual[k] = np.median(noise[power == k])
    return usual


def _power(y: np.ndarray) -> np.ndarray:
    return np.clip(np.frexp(y)[1], -99, 99) + 99
