"""Power series with balls as coefficients, which NumPy's functions compute.

At a midpoint the coefficients are those of a Taylor polynomial; around a whole interval
each encloses what it is anywhere in it, so that the first one that is left out bounds
the remainder. A choice that is open on an interval is noted: the interval is divided.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ....core.errors import UnsupportedOperationError
from ....core.rule import Composite, find_rule, name_of
from . import balls
from .arb import ObjectArray, arb, arb_series, balls_of, ctx, each, precision

# Functions of series, by the function of NumPy or SciPy that they stand for
SERIES: dict[Any, Callable[..., Any]] = {}


class _State(threading.local):
    terms = 0
    open: Any = None  # where a choice is open
    outside: Any = None  # where a function has no value in all of an interval


state = _State()


@contextmanager
def noting(n: int, *, terms: int, bits: int) -> Iterator[_State]:
    """Compute n series of so many terms, and take notes of them."""
    before, ctx.cap = ctx.cap, terms
    state.terms, state.open, state.outside = terms, np.zeros(n, bool), np.zeros(n, bool)
    try:
        with precision(bits), balls.noting():  # comparisons note ties, for nobody
            yield state
    finally:
        ctx.cap = before


def note_open(mask: Any) -> None:
    state.open |= np.broadcast_to(np.asarray(mask, bool), state.open.shape)


class Series(ObjectArray):
    """An array of power series; `dtype` is that of the numbers they stand for."""

    __slots__ = ("dtype", "value")

    def __init__(self, value: Any, dtype: Any = "float32") -> None:
        self.value = value
        self.dtype = np.dtype(dtype)

    def astype(self, dtype: Any, **_: Any) -> Series:
        return self

    def copy(self) -> Series:
        return self

    def call(self, fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return call(fn, args, kwargs)


class Choices(balls.Decisions):
    """Where something is true, or false, on all of an interval."""

    __slots__ = ()

    def call(self, fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return call(fn, args, kwargs)


def call(fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Run a function of NumPy or SciPy on series."""
    found = SERIES.get(fn)
    if found is not None:
        return found(*args, **kwargs)
    rule = None if isinstance(fn, tuple) else find_rule(fn)
    if isinstance(rule, Composite):
        return rule.definition(*args, **kwargs)
    name = name_of(fn[0] if isinstance(fn, tuple) else fn)
    raise UnsupportedOperationError(f"{name} has no power series yet")


def constant(x: Any) -> Any:
    return arb_series([x], prec=state.terms)


_constants = each(constant)
_firsts = each(lambda u: u[0])
NAN = arb("nan")


def unknown() -> Any:
    """A series of which nothing is known."""
    return arb_series([NAN] * state.terms, prec=state.terms)


def value_of(x: Any) -> Any:
    """The series that an operand is, or its exact balls if it is a number."""
    if isinstance(x, Series):
        return x.value
    if isinstance(x, balls.Decisions):
        note_open(x.is_open)
        return np.where(x.yes, arb(1), arb(0))
    return arb(x) if x.__class__ in (int, float) else balls_of(x)


def lifted(x: Any, like: Any) -> Any:
    """Series also of what is constant."""
    x = value_of(x)
    if isinstance(x, np.ndarray) and x.size and isinstance(x.flat[0], arb_series):
        return x
    return _constants(np.broadcast_to(balls_of(x), np.shape(like)))


def enclosures(x: Any) -> Any:
    """The balls that an operand is, on all of each interval."""
    x = value_of(x)
    if isinstance(x, np.ndarray) and x.size and not isinstance(x.flat[0], arb):
        return _firsts(x)
    return x


LEAST = 512  # the exponent of a huge exponential is larger than that everywhere


def exp(v: Any) -> Any:
    """The exponential of a ball or a series."""
    if v.__class__ is arb:
        return v.exp()
    if isinstance(v, Huge):
        return unknown()
    return Huge(v, constant(arb(1))) if v[0] > LEAST else v.exp()


class Huge:
    """f * exp(v) for a series v that is large, and a series f.

    On an interval where v is between 2**99 and 2**100 a ball around exp(v) contains 0,
    and 1 / (1 + exp(v)) could be anything. Here it is exp(-v) / (f + exp(-v)), which is
    tiny.
    """

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
