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

from ..arb import arb, precision
from ..formats import Format
from . import choosing, functions  # noqa: F401  (they register)
from .polynomials import enclosed, judged
from .series import Series, arb_series, noting

TERMS = 12  # of a series: polynomials are of degree 10 at most
FEW = 128  # points that cost less one by one than a piece does
HOPELESS = 1024  # points of pieces that are given up if none of 64 will do
BITS = (128, 512, 2048)


@dataclass
class Piece:
    """The numbers with the codes first to last, and what is true of them.

    `value` and `slope` are coefficients in s, highest first, `value_rad` and
    `slope_rad` what they may be off, rounding errors in double precision included.
    Without coefficients the points are to be looked at one by one, or are outside.
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
    """The pieces; one to be looked at point by point if fn does not run on series."""
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
    value = judged(series.value, form)
    slope = judged(series.slope, form)
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
