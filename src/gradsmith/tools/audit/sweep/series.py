"""Power series with balls as coefficients, which NumPy's functions compute.

At a midpoint the coefficients are those of a Taylor polynomial; around a whole interval
each encloses what it is anywhere in it, so that the first one that is left out bounds
the remainder. A choice that is open on an interval is noted: the interval is divided.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ....core.errors import UnsupportedOperationError
from ....core.rule import Composite, find_rule, name_of
from .. import state as ties
from ..arb import arb, balls_of, ctx, precision
from ..decisions import Decisions

arb_series: Any = import_module("flint").arb_series

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
        with precision(bits), ties.noting():  # which comparisons note, for nobody
            yield state
    finally:
        ctx.cap = before


class Series(NDArrayOperatorsMixin):
    """An array of power series; `dtype` is that of the numbers they stand for."""

    __slots__ = ("dtype", "value")
    __array_priority__ = 2000

    def __init__(self, value: Any, dtype: Any = "float32") -> None:
        self.value = value
        self.dtype = np.dtype(dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def size(self) -> int:
        return self.value.size

    def __len__(self) -> int:
        return len(self.value)

    def astype(self, dtype: Any, **_: Any) -> Series:
        return self

    def copy(self) -> Series:
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kw: Any) -> Any:
        return call(ufunc if method == "__call__" else (ufunc, method), args, kw)

    def __array_function__(self, fn: Any, types: Any, args: Any, kw: Any) -> Any:
        return call(fn, args, kw)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise UnsupportedOperationError("series can't become a plain NumPy array")


class Choices(Decisions):
    """Truth values on intervals."""

    __slots__ = ()
    __array_ufunc__ = Series.__array_ufunc__
    __array_function__ = Series.__array_function__


def call(fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Run a function of NumPy or SciPy on series."""
    found = None if isinstance(fn, tuple) else SERIES.get(fn)
    if found is not None:
        return found(*args, **kwargs)
    rule = None if isinstance(fn, tuple) else find_rule(fn)
    if isinstance(rule, Composite):
        return rule.definition(*args, **kwargs)
    name = name_of(fn[0] if isinstance(fn, tuple) else fn)
    raise UnsupportedOperationError(f"{name} has no power series yet")


def constant(x: Any) -> Any:
    return arb_series([x], prec=state.terms)


_constants = np.frompyfunc(constant, 1, 1)
NAN = arb("nan")


def unknown() -> Any:
    """A series of which nothing is known."""
    return arb_series([NAN] * state.terms, prec=state.terms)


def value_of(x: Any) -> Any:
    """The series that an operand is, or its exact balls if it is a number."""
    if isinstance(x, Series):
        return x.value
    if isinstance(x, Decisions):
        note_open(~(x.yes | x.no))
        return np.where(x.yes, arb(1), arb(0))
    return arb(x) if x.__class__ in (int, float) else balls_of(x)


def lifted(x: Any, like: Any) -> Any:
    """Series also of what is constant."""
    x = value_of(x)
    if isinstance(x, np.ndarray) and x.size and isinstance(x.flat[0], arb_series):
        return x
    return _constants(np.broadcast_to(balls_of(x), np.shape(like)))


def note_open(mask: Any) -> None:
    state.open |= np.broadcast_to(np.asarray(mask, bool), state.open.shape)


def first(u: Any) -> Any:
    """The ball of a series' value."""
    return u[0]


_firsts = np.frompyfunc(first, 1, 1)


def balls(x: Any) -> Any:
    """What an operand is, on all of each interval."""
    x = value_of(x)
    if isinstance(x, np.ndarray) and x.size and not isinstance(x.flat[0], arb):
        return _firsts(x)
    return x
