"""The derivative along a direction by differences, each element with its own error.

    f(x + h v) - f(x - h v)
    -----------------------  =  f'(x) v + c1 h^2 + c2 h^4 + ...  + noise / h
             2 h

for steps h that shrink by 4. Richardson's table removes one power after the other; of
its entries, the one that agrees best with its neighbours is taken, element by element,
and its disagreement is the error (Ridders). No tolerance enters: where the differences
don't converge, the error says so.

Where the derivatives from the two sides differ there is a kink, and each value between
them is a valid subgradient: `low` and `high` are the ends, the same where it is smooth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

STEPS = 5
RATIO = 4.0
SAFETY = 4.0
BLOCK = 8
PART = 2**14
SAMPLE = 2**15
ABRUPT = 2.0**12


@dataclass(frozen=True)
class Slope:
    """The derivative of each output along a direction: between low and high."""

    low: np.ndarray
    high: np.ndarray
    error: np.ndarray  # inf where the differences have not settled
    bend: np.ndarray  # by how much the two largest steps differ
    lost: np.ndarray | None = None  # where what may have moved was rounded away

    def or_better(self, other: Slope) -> Slope:
        """Of two slopes, element by element, the one with the smaller error.

        Where they contradict each other, at least one agreed with itself by chance.
        """
        better = other.error < self.error
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        best = Slope(*(np.where(better, b, a) for a, b in pairs))
        with np.errstate(invalid="ignore"):
            apart = np.maximum(other.low - self.high, self.low - other.high)
            contrary = apart > SAFETY * (self.error + other.error)
        return replace(best, error=np.where(contrary, np.inf, best.error))

    @property
    def size(self) -> np.ndarray:
        return np.maximum(np.abs(self.low), np.abs(self.high))

    @property
    def kinks(self) -> np.ndarray:
        return self.low != self.high


def slope(
    f: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    v: np.ndarray,
    *,
    y: np.ndarray,
    noise: np.ndarray,
    step: float = 0.125,
    steps: int = STEPS,
) -> Slope:
    """The derivative of f at x along v. `noise` is the rounding error of y = f(x)."""
    with np.errstate(all="ignore"):
        hs = step / RATIO ** np.arange(steps)
        sides = [(f(x + h * v), f(x - h * v)) for h in hs]
        pairs = list(zip(hs, sides, strict=True))
        seen = np.empty_like(noise)
        found = np.empty((4, y.size))
        for part in _parts(y.size):
            seen[part] = _seen_noise(noise[part], _beyond(pairs, y, part))
        seen = _shared(seen, y)
        for part in _parts(y.size):
            here = _beyond(pairs, y, part)
            found[:, part] = _slope(hs, here, noise[part], seen[part])
        return Slope(*found)


Pairs = list[tuple[float, tuple[np.ndarray, np.ndarray]]]


def _parts(n: int) -> list[slice]:
    """Stretches that fit into a cache: 3 times faster, and no memory for the rest."""
    return [slice(i, i + PART) for i in range(0, n, PART)]


def _beyond(pairs: Pairs, y: np.ndarray, part: slice) -> Pairs:
    """How far y is left to both sides, for some of the outputs."""
    y = y[part]
    return [(h, (p[part] - y, m[part] - y)) for h, (p, m) in pairs]


def _slope(
    hs: np.ndarray, pairs: Pairs, noise: np.ndarray, seen: np.ndarray
) -> tuple[np.ndarray, ...]:
    right = _one_sided([p / h for h, (p, _) in pairs])
    left = _one_sided([-m / h for h, (_, m) in pairs])
    rows = [(p - m) / (2 * h) for h, (p, m) in pairs]
    value, error = _ridders(rows, seen, hs)
    error = np.where(_abrupt(rows), np.inf, error)
    found = _with_kinks(value, error, left, right, noise, hs)
    return found.low, found.high, found.error, np.abs(rows[0] - rows[1])


def _seen_noise(noise: np.ndarray, pairs: Pairs) -> np.ndarray:
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
    """Each noise is at least about that of outputs of the same magnitude.

    Of many elements some look free of noise by chance; in a block of them few do.
    """
    if y.size < BLOCK:
        return noise
    if y.size > 2 * SAMPLE:
        return np.fmax(noise, 2 * _usual(noise, y))
    order = np.argsort(np.abs(y))
    blocks = np.resize(noise[order], (-(-y.size // BLOCK), BLOCK))
    usual = np.repeat(np.median(blocks, axis=1), BLOCK)[: y.size]
    shared = np.empty_like(noise)
    shared[order] = 2 * usual
    return np.fmax(noise, shared)


def _usual(noise: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The median noise of a sample of the outputs between the same powers of two."""
    power = np.clip(np.frexp(y)[1], -99, 99) + 99
    some = slice(None, None, y.size // SAMPLE)
    usual = np.zeros(199)
    for k in np.unique(power[some]):
        usual[k] = np.median(noise[some][power[some] == k])
    return usual[power]


def _abrupt(rows: list[np.ndarray]) -> np.ndarray:
    """Where differences agree all at once, having been far apart for a larger step.

    Those of a smooth function come closer by 16 from step to step. What agrees at once
    is one piece of several: a kink is near by, or y has so few digits that it is a
    staircase, whose steps say nothing of the slope.
    """
    abrupt = np.zeros(rows[0].shape, bool)
    for a, b, c in zip(rows, rows[1:], rows[2:], strict=False):
        change = np.abs(b - a)
        far = change > 0.3 * np.maximum(np.abs(a), np.abs(b))
        abrupt |= far & (np.abs(c - b) < change / ABRUPT)
    return abrupt


def _ridders(
    rows: list[np.ndarray], noise: np.ndarray, hs: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The entry of Richardson's table that agrees best with its neighbours."""
    best, error = rows[0], np.full(rows[0].shape, np.inf)
    above: list[np.ndarray] = []
    smooth: list[tuple[float, np.ndarray]] = []  # entries free of the first power
    for h, first in zip(hs, rows, strict=True):
        row, power = [first], RATIO**2
        for k, entry in enumerate(above):
            row.append(row[k] + (row[k] - entry) / (power - 1))
            power *= RATIO**2
            spread = np.maximum(np.abs(row[-1] - row[k]), np.abs(row[-1] - entry))
            better = np.maximum(spread, noise / h) < error  # never for NaN
            best = np.where(better, row[-1], best)
            error = np.where(better, np.maximum(spread, noise / h), error)
        smooth += [(h, row[1])] if above else []
        above = row
    # Entries may agree by chance, where y has few digits, or because the steps are too
    # large to see what happens at x: what the smallest steps say otherwise, beyond
    # their noise, is an error.
    for h, entry in smooth[-2:]:
        error = np.fmax(error, np.abs(entry - best) - SAFETY * noise / h)
    return best, error


def _one_sided(rows: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The derivative from one side, by the smallest steps and by wider ones."""
    a, b, c = rows[-3:]
    return c + (c - b) / (RATIO - 1), b + (b - a) / (RATIO - 1)


def _with_kinks(
    value: np.ndarray,
    error: np.ndarray,
    left: tuple[np.ndarray, np.ndarray],
    right: tuple[np.ndarray, np.ndarray],
    noise: np.ndarray,
    hs: np.ndarray,
) -> Slope:
    """Put the two sides in place of the value where they differ for good."""
    (a, a_wide), (b, b_wide) = left, right
    gap, gap_wide = np.abs(b - a), np.abs(b_wide - a_wide)
    rough = np.abs(a - a_wide) + np.abs(b - b_wide) + 8 * noise / hs[-1]
    kink = gap > 16 * rough
    # Vertical from both sides, or a jump: the sides differ more and more.
    torn = ~kink & (gap > 0.1 * np.maximum(np.abs(a), np.abs(b)))
    torn &= (gap > 0.5 * gap_wide) & (gap > 16 * noise / hs[-1])
    error = np.where(torn | ~np.isfinite(value), np.inf, error)
    return Slope(
        low=np.where(kink, np.minimum(a, b), value),
        high=np.where(kink, np.maximum(a, b), value),
        error=np.where(kink, rough, error),
        bend=gap,
    )


def noise_of(
    f: Callable[[np.ndarray], np.ndarray],
    x: np.ndarray,
    y: np.ndarray,
    *,
    eps: float,
    random: np.random.Generator,
) -> np.ndarray:
    """The rounding error of y = f(x): how y moves if x moves by its last digits.

    It is never taken for less than a unit of y itself.
    """
    with np.errstate(all="ignore"):
        found = eps * np.abs(y)
        for other in _jittered(x, eps, random):
            moved = np.abs(f(other) - y)
            found = np.fmax(found, np.where(np.isfinite(moved), moved, 0.0))
    return found


def _jittered(
    x: np.ndarray, eps: float, random: np.random.Generator
) -> Iterator[np.ndarray]:
    for _ in range(2):
        yield x * (1 + 2 * eps * random.choice([-1.0, 1.0], x.shape))
