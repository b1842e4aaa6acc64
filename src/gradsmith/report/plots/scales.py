"""Axes: from numbers to places between 0 and 1, and the ticks on them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..figures import number

_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
ROOM = 0.1  # of an axis, that the words at zero need
MINUS = "\N{MINUS SIGN}"
GAP = 0.08  # of an axis: around zero between two logarithms, and below infinity


def finite(xs: Iterable[Any]) -> list[float]:
    return [x for x in map(number, xs) if math.isfinite(x)]


def power(exponent: int, sign: int = 1) -> str:
    """A power of ten, as a tick says it.

    >>> power(-20), power(2), power(0, -1)
    ('10⁻²⁰', '100', '−1')
    """
    minus = MINUS if sign < 0 else ""
    if 0 <= exponent <= 3:
        return f"{minus}{10**exponent}"
    if -2 <= exponent < 0:
        return f"{minus}{10.0**exponent:g}"
    return f"{minus}10{str(exponent).translate(_RAISED)}"


@dataclass(frozen=True)
class LinearScale:
    """From low to high, evenly."""

    low: float
    high: float

    def __call__(self, x: float) -> float:
        return _clamped((x - self.low) / (self.high - self.low))

    @property
    def ticks(self) -> list[tuple[float, str]]:
        step = _nice((self.high - self.low) / 4)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [(k * step, _plain(k * step)) for k in range(first, last + 1)]


@dataclass(frozen=True)
class LogScale:
    """Powers of ten, from 10**low to 10**high; less than that is at the bottom."""

    low: int
    high: int
    infinite: bool = False  # with a place for infinity above all others

    def __call__(self, x: float) -> float:
        if x <= 0:
            return 0.0
        if math.isinf(x):
            return 1.0
        share = (math.log10(x) - self.low) / (self.high - self.low)
        return _clamped(share) * (1 - GAP if self.infinite else 1)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        step = _stride(self.high - self.low, 5)
        exponents = range(_up(self.low, step), self.high + 1, step)
        top = [(math.inf, "∞")] if self.infinite else []
        return [*((10.0**k, power(k)) for k in exponents), *top]


@dataclass(frozen=True)
class SymlogScale:
    """Logarithms on both sides of zero: magnitudes from 10**low to 10**high.

    A side that nothing is on has no room.
    """

    low: int
    high: int
    negative: bool = True
    positive: bool = True

    def __call__(self, x: float) -> float:
        side = self._side
        if abs(x) < 10.0**self.low:
            return self._zero
        far = min(math.log10(abs(x)) if math.isfinite(x) else self.high, self.high)
        share = (far - self.low) / (self.high - self.low)
        return self._zero + math.copysign(GAP / 2 + share * side, x)

    @property
    def _side(self) -> float:
        return (1 - GAP) / (2 if self.negative and self.positive else 1)

    @property
    def _zero(self) -> float:
        if self.negative and self.positive:
            return 0.5
        return GAP / 2 if self.positive else 1 - GAP / 2

    @property
    def ticks(self) -> list[tuple[float, str]]:
        both = self.negative and self.positive
        step = _stride(self.high - self.low, 3 if both else 6)
        exponents = range(_up(self.low, step), self.high + 1, step)
        signs = [s for s, there in ((-1, self.negative), (1, self.positive)) if there]
        marks = [(s * 10.0**k, power(k, s)) for s in signs for k in exponents]
        far = [mark for mark in marks if abs(self(mark[0]) - self._zero) > ROOM]
        return sorted([*far, (0.0, "0")])


def linear_for(values: Iterable[Any]) -> LinearScale:
    """An axis with a little room around the values."""
    xs = finite(values) or [0.0]
    low, high = min(xs), max(xs)
    room = 0.06 * (high - low) or 0.5 * max(1.0, abs(low))
    return LinearScale(low - room, high + room)


def log_for(
    values: Iterable[Any], *, low: int, high: int, floor: int = -20
) -> LogScale:
    """An axis over powers of ten, at least from low to high."""
    values = list(values)
    sizes = [math.log10(x) for x in finite(values) if x > 0]
    least = max(floor, math.floor(min(sizes, default=low)))
    most = max(high, math.ceil(max(sizes, default=high)))
    infinite = any(math.isinf(number(x)) for x in values)
    return LogScale(min(low, least), most, infinite)


def symlog_for(values: Sequence[Any]) -> SymlogScale:
    xs = finite(values)
    sizes = [math.log10(abs(x)) for x in xs if x]
    low, high = math.floor(min(sizes, default=-1)), math.ceil(max(sizes, default=1))
    return SymlogScale(
        low, max(high, low + 1), any(x < 0 for x in xs), any(x >= 0 for x in xs)
    )


def _clamped(x: float) -> float:
    return x if math.isnan(x) else min(1.0, max(0.0, x))


def _nice(step: float) -> float:
    size = 10.0 ** math.floor(math.log10(step))
    return next(k * size for k in (1, 2, 2.5, 5, 10) if k * size >= step * 0.999)


def _stride(decades: int, most: int) -> int:
    """Between labelled powers, such that there are few."""
    strides = (1, 2, 3, 5, 10, 15, 20, 30, 50, 100)
    return next((n for n in strides if decades / n <= most), 200)


def _up(k: int, step: int) -> int:
    return -(-k // step) * step


def _plain(x: float) -> str:
    return f"{x:.6g}".replace("-", MINUS) if x else "0"
