"""What pieces say of a chunk of numbers: polynomials, evaluated in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..formats import Format
from .measure import Scratch, inverse_units
from .pieces import Piece

SLACK = 2.0**-10  # ULP; what is known less well is looked at point by point


class Quantity:
    """True numbers p, and where they are not known or not asked for.

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
        least = 2.0 ** (self.form.least + self.form.digits - 1)
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
            quantity.flush(np.abs(x) < 2.0 ** (form.least + form.digits - 1))
    return value, slope
