"""Intervals of numbers, each with polynomials for the value and the derivative.

On an interval with midpoint m and s = (x - m)/2**q, |s| <= 1, a function is
c0 + c1 s + ... + cd s**d, give or take what c(d+1) is anywhere in it (Lagrange).
The derivative's polynomial is the derivative of the polynomial, with the same
enclosure for its remainder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ..certified.arb import arb, arb_series, each, precision
from ..certified.series import Series, noting
from ..formats import Format

TERMS = 12  # of a series: polynomials are of degree 10 at most
FEW = 128  # points that cost less one by one than a piece does
HOPELESS = 1024  # points of pieces that are given up if none of 64 will do
BITS = (128, 512, 2048)
SPARE = 11  # remainders are at most 2**-11 units in the last place
ROOT = 46  # or 2**-46 of the greatest value, where there is a root
U = 2.0**-53  # a rounding error


@dataclass
class Piece:
    """The numbers with the codes first to last, and what is true of them.

    `value` and `slope` are coefficients in s, highest first, `value_rad` and
    `slope_rad` what they may be off, rounding errors in double precision included.
    Without coefficients the points are to be certified one by one, or are outside.
    """

    first: int
    last: int
    mid: float = 0.0
    scale: float = 1.0
    value: Any = None
    slope: Any = None
    value_rad: float = 0.0
    slope_rad: float = 0.0
    outside: bool = False


def pieces_or_points(
    fn: Callable[..., Any], first: int, last: int, form: Format, parts: int = 8
) -> list[Piece]:
    """The pieces; one without coefficients if fn does not run on series."""
    try:
        return pieces_of(fn, first, last, form, parts)
    except Exception:  # the oracle says what is wrong with it, if anything is
        return [Piece(first, last)]


def pieces_of(
    fn: Callable[..., Any], first: int, last: int, form: Format, parts: int = 8
) -> list[Piece]:
    """The pieces of the numbers with the codes first to last, all of one sign."""
    steps = np.linspace(first, last + 1, min(parts, last + 1 - first) + 1).astype(int)
    todo = [(int(a), int(b) - 1, 0) for a, b in pairwise(steps)]
    found: list[Piece] = []
    while todo:
        before, known = todo, len(found)
        todo = list(_tried(fn, todo, form, found))
        if len(before) >= 64 and len(found) == known and _are_short(before):
            found += [Piece(a, b) for a, b, _ in before]  # it goes up and down too fast
            break
    return sorted(found, key=lambda piece: piece.first)


def _are_short(intervals: list[tuple[int, int, int]]) -> bool:
    return max(b - a for a, b, _ in intervals) < HOPELESS


def _tried(
    fn: Any, todo: list[tuple[int, int, int]], form: Format, found: list[Piece]
) -> Iterator[tuple[int, int, int]]:
    """Try all intervals once; those that are to be tried again."""
    for level, bits in enumerate(BITS):
        some = [(a, b) for a, b, tried in todo if tried == level]
        if not some:
            continue
        for (a, b), made in zip(some, _made(fn, some, form, bits), strict=True):
            if isinstance(made, Piece):
                found.append(made)
            elif made == "bits" and level + 1 < len(BITS):
                yield a, b, level + 1
            elif b - a < FEW:
                found.append(Piece(a, b))
            else:
                half = (a + b) // 2
                yield a, half, level
                yield half + 1, b, level


def _made(fn: Any, some: list[tuple[int, int]], form: Format, bits: int) -> list[Any]:
    """A piece for each interval, or what it wants: more "bits", or to be "divided"."""
    ends = form.numbers(np.array(some)).astype(np.float64)
    mid = (ends[:, 0] + ends[:, 1]) / 2  # exact, as are all differences from it
    half = np.maximum(np.abs(ends[:, 1] - ends[:, 0]) / 2, 2.0**-1000)
    scale = np.ldexp(1.0, np.ceil(np.log2(half)).astype(int))
    series = _Series(fn, mid, half, scale, bits)
    value = polynomials(series.value, form)
    slope = polynomials(series.slope, form)
    made: list[Any] = []
    for i, (a, b) in enumerate(some):
        if series.open[i]:
            made.append("divide")
        elif series.outside[i]:
            made.append(Piece(a, b, outside=True))
        elif value[i] is None or slope[i] is None:
            made.append("divide")
        elif "bits" in (value[i], slope[i]):
            made.append("bits")
        else:
            (c, rad), (g, slope_rad) = value[i], slope[i]
            at = float(mid[i]), 1 / float(scale[i])
            made.append(Piece(a, b, *at, c, g, rad, slope_rad))
    return made


class _Series:
    """A definition on series at midpoints and around whole intervals, at once."""

    def __init__(self, fn: Any, mid: Any, half: Any, scale: Any, bits: int) -> None:
        n = len(mid)
        with noting(2 * n, terms=TERMS, bits=bits) as notes:
            x = np.empty(2 * n, object)
            for i in range(n):
                x[i] = arb_series([mid[i], scale[i]], prec=TERMS)
                around = arb(mid[i], half[i])
                x[n + i] = arb_series([around, scale[i]], prec=TERMS)
            y = fn(Series(x))
            y = y.value if isinstance(y, Series) else np.full(2 * n, y, object)
            self.open = notes.open[:n] | notes.open[n:]
            rows = [_coefficients(y[i]) for i in range(2 * n)]
            self._read(rows, n, scale)
            gone = ~np.isfinite(self.value.wide[:, 0])
            self.outside = notes.outside[n:] & gone & ~np.isfinite(self.value.mid[:, 0])

    def _read(self, rows: list[list[Any]], n: int, scale: Any) -> None:
        c = np.array(rows[:n], object), np.array(rows[n:], object)
        self.value = enclosed(*c)
        with precision(128):
            step = np.array([arb(1) / arb(float(s)) for s in scale], object)[:, None]
            k = np.array([arb(k) for k in range(1, TERMS)], object)
            self.slope = enclosed(*[part[:, 1:] * k * step for part in c])


def _coefficients(y: Any) -> list[Any]:
    return [y[k] for k in range(TERMS)] if not isinstance(y, arb | float | int) else [
        arb(y), *[arb(0)] * (TERMS - 1)
    ]  # fmt: skip


# Enclosed coefficients as a polynomial in double precision, and what it is off


@dataclass
class Enclosed:
    """Coefficients at midpoints, what they are off, and bounds of those all over."""

    mid: Any
    off: Any
    wide: Any
    least: Any  # the least size that the function has


_float = each(float)
_radius = each(lambda x: float(x.rad()))
_most = each(lambda x: float(x.abs_upper()))
_least = each(lambda x: float(x.abs_lower()))


def enclosed(mid: Any, wide: Any) -> Enclosed:
    c = _float(mid).astype(float)
    off = _radius(mid).astype(float) + U * np.abs(c) + 2.0**-1070
    most = _most(wide).astype(float) * (1 + 4 * U) + 2.0**-1070
    least = _least(wide[:, 0]).astype(float) * (1 - 4 * U)
    return Enclosed(c, off, most, least)


def polynomials(found: Enclosed, form: Format) -> list[Any]:
    """Of each interval: coefficients and radius; "bits" or None if they don't do."""
    top, tiny = 2.0**form.most, 2.0 ** (form.least - SPARE - 2)
    made: list[Any] = []
    for c, off, wide, least in zip(
        found.mid, found.off, found.wide, found.least, strict=True
    ):
        if least >= top:
            made.append(([np.copysign(top, c[0])], 0.0))
        elif wide[0] <= tiny:
            made.append(([0.0], wide[0]))
        else:
            made.append(polynomial(c, off, wide, form))
    return made


def polynomial(c: Any, off: Any, wide: Any, form: Format) -> Any:
    if not (np.isfinite(c).all() and np.isfinite(wide[0])):
        return None
    for d in range(len(c) - 1):
        size = np.abs(c[: d + 1])
        rest = wide[d + 1]
        most = size.sum() + rest
        least = max(2 * size[0] - most, 0.0)
        bound = _tolerance(least, most, form)
        if not rest <= bound:
            continue
        # Horner's rule: 2k + 1 roundings of the k-th term, and one of its coefficient
        rounding = (size * (2 * np.arange(d + 1) + 2)).sum() * U * 1.01
        rad = float(rest + off[: d + 1].sum() + rounding) * (1 + 8 * U)
        if off[: d + 1].sum() > 2 * bound:
            return "bits"
        return [float(a) for a in c[: d + 1][::-1]], rad
    return None


def _tolerance(least: float, most: float, form: Format) -> float:
    """What a remainder may be, from the least and the greatest size of a function."""
    low = 2.0 ** (form.least - SPARE)
    if least == 0:
        return max(low, most * 2.0**-ROOT)
    unit = np.frexp(least)[1] - form.digits
    return max(low, 2.0 ** (float(unit) - SPARE))
