"""Errors in ULP of chunks of numbers, in place: 15 passes of 0.2 ns an element.

The true numbers are polynomials, evaluated in double precision. A unit is a power of 2,
so that its inverse is made of the true number's exponent.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2
from typing import Any

import numpy as np

from ..errors import FINE, LOST, NAN, OVERFLOW, UNDERFLOW
from ..formats import Format
from ..model import LIMIT
from .pieces import Piece

MASK = np.uint64(0x7FF << 52)
FEW = 8  # steps that are counted one by one
SLACK = 2.0**-10  # ULP; what is known less well is certified point by point


class Scratch:
    """Memory for chunks of at most n numbers: fresh pages would cost 30 ns each."""

    def __init__(self, n: int, form: Format) -> None:
        self.p, self.inverse, self.off = np.empty(n), np.empty(n), np.empty(n)
        self.nearest = np.empty(n, form.dtype)
        self.apart = np.empty(n, f"i{form.bits // 8}")


@dataclass
class Measured:
    """The errors of some results of which all is known; `at` is the worst of them."""

    ulp: Any
    at: int
    max_ulp: float
    sum_ulp: float
    sum_bits: float
    beyond: int = 0
    kinds: tuple[int, ...] = (0, 0, 0, 0)  # of NAN, OVERFLOW, UNDERFLOW, LOST


def inverse_units(p: Any, form: Format, out: Any) -> Any:
    """1/ulp of true numbers, in `out`."""
    e = out.view(np.uint64)
    np.bitwise_and(p.view(np.uint64), MASK, out=e)
    low, high = form.least + form.digits - 1, form.most - 1
    np.clip(e, np.uint64((low + 1023) << 52), np.uint64((high + 1023) << 52), out=e)
    np.subtract(np.uint64((2045 + form.digits) << 52), e, out=e)
    return out


def measured(
    results: Any, p: Any, inverse: Any, form: Format, scratch: Scratch
) -> Measured:
    """Compare results with true numbers p, of which beyond the format is 2**most."""
    off = scratch.off[: len(p)]
    np.copyto(off, results)
    np.subtract(off, p, out=off)
    np.abs(off, out=off)
    np.multiply(off, inverse, out=off)
    at = int(off.argmax())
    if not off[at] < np.inf:
        at = _with_infinities(off, results, p, inverse, form)
    bits = _bits(results, p, form, scratch)
    found = Measured(off, at, float(off[at]), float(off.sum()), bits)
    if found.max_ulp > LIMIT:
        _tell(found, results, p)
    return found


def _with_infinities(off: Any, results: Any, p: Any, inverse: Any, form: Format) -> int:
    """Infinity is the number after the largest; NaN is infinitely far off."""
    top = 2.0**form.most
    np.copyto(off, results)
    np.clip(off, -top, top, out=off)
    np.abs(off - p, out=off)
    np.multiply(off, inverse, out=off)
    off[np.isnan(off)] = np.inf
    return int(off.argmax())


def _bits(results: Any, p: Any, form: Format, scratch: Scratch) -> float:
    """The sum of log2(1 + n) for the n numbers between results and the nearest ones."""
    nearest, n = scratch.nearest[: len(p)], scratch.apart[: len(p)]
    with np.errstate(over="ignore", under="ignore"):
        np.copyto(nearest, p, casting="same_kind")
    np.subtract(results.view(n.dtype), nearest.view(n.dtype), out=n)
    np.abs(n, out=n)  # of numbers of different signs it is 2**(bits - 9) at least
    most = int(n.max())
    if most > FEW or n.min() < 0:  # -2**31 is its own size
        return _many_bits(results, nearest, form)
    steps = [np.count_nonzero(n >= k) for k in range(1, most + 1)]
    return float(sum(c * log2(1 + 1 / k) for k, c in enumerate(steps, 1)))


def _many_bits(results: Any, nearest: Any, form: Format) -> float:
    n = np.abs(form.codes(results) - form.codes(nearest)).astype(np.float64)
    bits = np.log2(1 + n)
    bits[np.isnan(results)] = form.bits
    return float(bits.sum())


def _tell(found: Measured, results: Any, p: Any) -> None:
    """Count what is beyond the limit, by how it fails."""
    bad = np.flatnonzero(found.ulp > LIMIT)
    got, p = results[bad], p[bad]
    kind = np.full(len(bad), LOST)
    kind[(got == 0) & (p != 0)] = UNDERFLOW
    kind[np.isinf(got)] = OVERFLOW
    kind[np.isnan(got)] = NAN
    found.beyond = len(bad)
    found.kinds = tuple(map(int, np.bincount(kind, minlength=5)[FINE + 1 :]))


class Quantity:
    """True numbers p, and where they are not known or not judged.

    `open` and `outside` are masks, or None if there is no such number.
    """

    def __init__(self, n: int, form: Format, scratch: Scratch) -> None:
        self.p, self.inverse, self.form = scratch.p[:n], scratch.inverse[:n], form
        self.scratch = scratch
        self.open: Any = None
        self.outside: Any = None
        self.rads: list[tuple[slice, float]] = []

    def fill(self, here: slice, s: Any, coefficients: Any, rad: float) -> None:
        """Horner's rule."""
        p = self.p[here]
        p.fill(coefficients[0])
        for c in coefficients[1:]:
            np.multiply(p, s, out=p)
            np.add(p, c, out=p)
        self.rads.append((here, rad))

    def leave(self, here: slice, *, outside: bool) -> None:
        """Say nothing of some numbers."""
        self.p[here] = 1
        name = "outside" if outside else "open"
        self._mask(name)[here] = True

    def finish(self) -> None:
        """Find the units, and where too little is known."""
        top = 2.0**self.form.most
        np.clip(self.p, -top, top, out=self.p)
        inverse_units(self.p, self.form, self.inverse)
        for here, rad in self.rads:
            inverse = self.inverse[here]
            if rad * float(inverse.max()) > SLACK:
                self._mask("open")[here] = inverse * rad > SLACK

    def leave_out(self, gone: Any) -> None:
        """Don't judge some numbers."""
        if gone.any():
            self._mask("outside")[gone] = True
            self._mask("open")[gone] = False

    def flush(self, subnormal: Any) -> None:
        """Leave out what a framework makes 0 on purpose, in or out."""
        least = self.form.smallest_normal
        self.leave_out(subnormal | ((np.abs(self.p) < least) & (self.p != 0)))

    def leave_out_declared(self, dx: Any) -> None:
        """Leave out the engine's gradients that are 0 for the true one is too large."""
        most = self.form.overflow
        if self.p.max() >= most or self.p.min() <= -most:
            self.leave_out((dx == 0) & (np.abs(self.p) >= most))

    def _mask(self, name: str) -> Any:
        if getattr(self, name) is None:
            setattr(self, name, np.zeros(len(self.p), bool))
        return getattr(self, name)


def truths(
    x: Any,
    first: int,
    pieces: list[Piece],
    form: Format,
    scratch: tuple[Scratch, Scratch],
    *,
    flushes: bool = False,
) -> tuple[Quantity, Quantity]:
    """The values and the derivatives at x, whose codes are first, first + 1, ..."""
    wide, n = x.astype(np.float64), len(x)
    value, slope = (Quantity(n, form, memory) for memory in scratch)
    for piece in pieces:
        here = slice(max(piece.first - first, 0), min(piece.last + 1 - first, n))
        if piece.value is None:
            value.leave(here, outside=piece.outside)
            slope.leave(here, outside=piece.outside)
            continue
        s = wide[here]
        np.subtract(s, piece.mid, out=s)
        np.multiply(s, piece.scale, out=s)
        value.fill(here, s, piece.value, piece.value_rad)
        slope.fill(here, s, piece.slope, piece.slope_rad)
    for quantity in (value, slope):
        quantity.finish()
        if flushes:
            quantity.flush(np.abs(x) < form.smallest_normal)
    return value, slope
