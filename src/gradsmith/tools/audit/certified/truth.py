"""Certified numbers as floating-point numbers: a double one, a radius, a status."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..formats import Format
from .arb import arb, balls_of, each

DECIDED, KINK, OUTSIDE, UNDECIDED = range(4)
_FIELDS = ("hi", "lo", "rad", "scale", "status")
SPARE = 10  # balls are at most 2**-10 units in the last place wide


@dataclass
class Truth:
    """Certified numbers: each true one is (hi + lo) * 2**scale, give or take rad.

    `rad` is in the same scale. `status` says whether a number is decided, or is
    anywhere in its ball since the function has a kink there, or does not exist, or is
    open after all.
    """

    hi: Any
    lo: Any
    rad: Any
    scale: Any
    status: Any

    @classmethod
    def empty(cls, shape: tuple[int, ...]) -> Truth:
        hi, lo, rad = (np.full(shape, np.nan) for _ in range(3))
        status = np.full(shape, UNDECIDED, np.uint8)
        return cls(hi, lo, rad, np.zeros(shape, np.int64), status)

    @property
    def number(self) -> Any:
        """The true numbers in double precision, infinite or 0 beyond its range."""
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return np.ldexp(self.hi, self.scale)

    def having(self, status: Any) -> Truth:
        return Truth(self.hi, self.lo, self.rad, self.scale, status)

    def at(self, index: Any) -> Truth:
        return Truth(*[getattr(self, name)[index] for name in _FIELDS])

    def put(self, at: Any, other: Truth) -> None:
        """Take over what another one knows of some places."""
        for name in _FIELDS:
            getattr(self, name)[at] = getattr(other, name)

    def count(self, status: int) -> int:
        return int(np.count_nonzero(self.status == status))


_float = each(float)
_accuracy = each(arb.rel_accuracy_bits)
_radius = each(lambda x: float(x.rad()))


def read(balls: Any, form: Format) -> Truth:
    """Balls as floating-point numbers; decided if they are narrow enough."""
    hi = _float(balls).astype(np.float64)
    bits = np.minimum(_accuracy(balls).astype(np.float64), 2000).astype(np.int64)
    scale = np.zeros(hi.shape, np.int64)
    far = ~((np.abs(hi) < 2.0**1000) & ((np.abs(hi) > 2.0**-900) | (hi == 0)))
    far |= (hi == 0) & (bits < 2000)
    if far.any():
        scale[far] = [_scale_of(x) for x in balls[far]]
        scaled = balls.copy()
        scaled[far] = [
            x * arb(2) ** -int(s) for x, s in zip(balls[far], scale[far], strict=True)
        ]
        balls = scaled
        hi[far] = _float(balls[far]).astype(np.float64)
    lo = np.zeros(hi.shape)
    finite = np.isfinite(hi)
    if form.digits > 40:
        rest = balls[finite] - balls_of(hi[finite])
        lo[finite] = _float(rest).astype(np.float64)
    else:
        bits = np.minimum(bits, 53)  # the rest is not needed
    with np.errstate(under="ignore", invalid="ignore"):
        rad = np.ldexp(np.abs(hi), 2 - bits)
        rad[(bits >= 2000) | (hi == 0)] = 0
    wide = finite & (bits < form.digits + SPARE)
    rad[wide] = _radius(balls[wide]).astype(np.float64)
    small = np.ldexp(1.0, np.clip(form.least - SPARE - scale, -1074, 1000))
    known = (finite & (~wide | (rad < small))) | _is_sure_infinity(hi, bits)
    return Truth(hi, lo, rad, scale, np.where(known, DECIDED, UNDECIDED))


def _scale_of(x: Any) -> int:
    """A power of 2 near a ball, or one beyond all formats in its direction."""
    if not x.is_finite() or x.mid() == 0:
        return 0
    mantissa, exponent = x.mid().man_exp()
    return max(-5000, min(int(exponent) + int(mantissa).bit_length(), 5000))


def _is_sure_infinity(hi: Any, bits: Any) -> Any:
    return np.isinf(hi) & (bits > 0)
