"""Choices between series, which have to be the same on all of an interval."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arb import arb
from ..decisions import _and as both
from ..decisions import _not as negated
from ..decisions import compare, decisions
from .series import SERIES, Choices, Series, balls, lifted, note_open, state


def comparison(ufunc: Any) -> Any:
    def call(x1: Any, x2: Any) -> Choices:
        found = compare(ufunc, balls(x1), balls(x2))
        return Choices(found.yes, found.no)

    return call


for _fn in (
    np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal,
):  # fmt: skip
    SERIES[_fn] = comparison(_fn)


def _logical(fn: Any) -> Any:
    def call(*args: Any) -> Choices:
        found = fn(*[decisions(x) for x in args])
        return Choices(found.yes, found.no)

    return call


for _fn in (np.logical_and, np.bitwise_and):
    SERIES[_fn] = _logical(both)
for _fn in (np.logical_or, np.bitwise_or):
    SERIES[_fn] = _logical(lambda a, b: negated(both(negated(a), negated(b))))
for _fn in (np.logical_not, np.invert):
    SERIES[_fn] = _logical(negated)


def where(condition: Any, x1: Any, x2: Any) -> Series:
    found = decisions(condition)
    note_open(~(found.yes | found.no))
    like = np.empty(state.open.shape)
    return Series(np.where(found.yes, lifted(x1, like), lifted(x2, like)))


def _extreme(ufunc: Any) -> Any:
    return lambda x1, x2: where(SERIES[ufunc](x1, x2), x1, x2)


def size(x: Any) -> Series:
    return where(SERIES[np.greater](x, 0), x, -x)


def _steps(value: Any) -> Any:
    """A function that is constant but where it jumps."""

    def call(x: Any) -> Series:
        y = np.frompyfunc(value, 1, 1)(balls(x))
        note_open(~np.asarray(np.frompyfunc(arb.is_exact, 1, 1)(y), bool))
        return Series(lifted(y, y))

    return call


SERIES[np.where] = where
for _fn in (np.maximum, np.fmax):
    SERIES[_fn] = _extreme(np.greater)
for _fn in (np.minimum, np.fmin):
    SERIES[_fn] = _extreme(np.less)
for _fn in (np.absolute, np.fabs):
    SERIES[_fn] = size
for _fn, _value in {np.sign: arb.sgn, np.floor: arb.floor, np.ceil: arb.ceil}.items():
    SERIES[_fn] = _steps(_value)
SERIES[np.clip] = lambda a, a_min=None, a_max=None, **_: _clipped(a, a_min, a_max)
SERIES[np.astype] = lambda x, dtype, **_: x
SERIES[np.copy] = lambda a, *_, **__: a
SERIES[np.ones_like] = lambda a, *_, **__: a * 0 + 1
SERIES[np.zeros_like] = lambda a, *_, **__: a * 0
SERIES[np.full_like] = lambda a, fill_value, *_, **__: a * 0 + fill_value
SERIES[np.shape], SERIES[np.ndim], SERIES[np.size] = (
    lambda a: a.shape, lambda a: a.ndim, lambda a: a.size,
)  # fmt: skip
SERIES[np.isnan] = SERIES[np.isinf] = lambda x: Choices(
    np.zeros(x.shape, bool), np.ones(x.shape, bool)
)
SERIES[np.isfinite] = lambda x: Choices(np.ones(x.shape, bool), np.zeros(x.shape, bool))


def _clipped(x: Any, low: Any, high: Any) -> Any:
    x = x if low is None else np.maximum(x, low)
    return x if high is None else np.minimum(x, high)
