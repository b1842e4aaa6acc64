"""Exponentials beyond all balls: f * exp(v), with v not yet in the exponent.

On an interval where v is between 2**99 and 2**100 a ball around exp(v) contains 0, and
1 / (1 + exp(v)) could be anything. Here it is exp(-v) / (f + exp(-v)), which is tiny.
"""

from __future__ import annotations

from typing import Any

from ..arb import arb
from .series import NAN, constant, unknown

LEAST = 512  # v is larger than that everywhere


def exp(v: Any) -> Any:
    """The exponential of a series."""
    if isinstance(v, Huge):
        return unknown()
    return Huge(v, constant(arb(1))) if v[0] > LEAST else v.exp()


class Huge:
    """f * exp(v) for a series v that is large, and a series f."""

    __slots__ = ("f", "v")

    def __init__(self, v: Any, f: Any) -> None:
        self.v, self.f = v, f

    def __getitem__(self, k: int) -> Any:
        """The first coefficients, as far as their signs are known: all are infinite."""
        if k > 1:
            return NAN
        slope = self.f if k == 0 else self.f * self.v.derivative() + self.f.derivative()
        sign = slope[0].sgn()
        return sign * arb("inf") if sign.is_exact() and sign != 0 else arb(0, "inf")

    def __neg__(self) -> Huge:
        return Huge(self.v, -self.f)

    def __pos__(self) -> Huge:
        return self

    def __add__(self, other: Any) -> Any:
        if isinstance(other, Huge):
            if other.v[0] > self.v[0]:
                return other + self
            return Huge(self.v, self.f + other.f * (other.v - self.v).exp())
        return Huge(self.v, self.f + other * (-self.v).exp())

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Huge):
            return Huge(self.v + other.v, self.f * other.f)
        return Huge(self.v, self.f * other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        if isinstance(other, Huge):
            return self.f / other.f * exp(self.v - other.v)
        return Huge(self.v, self.f / other)

    def __rtruediv__(self, other: Any) -> Any:
        return other * (-self.v).exp() / self.f

    def __abs__(self) -> Any:
        return self if self.f[0] > 0 else -self

    def log(self) -> Any:
        return self.v + self.f.log()

    def sqrt(self) -> Any:
        half = self.v / 2
        return Huge(half, self.f.sqrt()) if half[0] > LEAST else unknown()
