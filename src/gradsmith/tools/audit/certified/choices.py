"""Comparisons, which never guess, and choices: where, maximum, max, argmax, and more.

A comparison of balls is true, false or open. Where it is open a choice encloses both
branches, and more bits will tell; between series the interval is divided. Where both
sides are exactly equal the comparison is decided, but a derivative may jump: the point
is noted, and its run is repeated with the tie broken upwards and downwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.cotangent import unbroadcast
from ....core.errors import UnsupportedOperationError
from ....rules.axes import kept_shape, lined_up, put_back
from .arb import arb, each
from .balls import (
    CALLS,
    Balls,
    Decisions,
    is_finite,
    made,
    state,
    times,
    value_of,
)
from .series import SERIES, Choices, Series, enclosures, lifted, note_open
from .series import state as intervals


def decisions(x: Any) -> Decisions:
    """Truth values, decided ones if they are plain."""
    if isinstance(x, Decisions):
        return x
    if isinstance(x, Balls):
        return compare(np.not_equal, x, 0)
    x = np.asarray(x, bool)
    return Decisions(x, ~x)


# What a comparison says where both sides are equal, by the side of the tie
_OPPOSITE = {
    np.less: np.greater_equal,
    np.greater_equal: np.less,
    np.greater: np.less_equal,
    np.less_equal: np.greater,
    np.equal: np.not_equal,
    np.not_equal: np.equal,
}
_ABOVE = (np.greater, np.greater_equal, np.not_equal)
_BELOW = (np.less, np.less_equal, np.not_equal)


def compare(ufunc: Any, x1: Any, x2: Any) -> Decisions:
    a, b = value_of(x1), value_of(x2)
    tied = np.asarray(np.equal(a, b), bool)
    if ufunc in (np.equal, np.not_equal):  # balls apart are known to differ
        apart = np.asarray(np.less(a, b) | np.greater(a, b), bool)
        same = tied if ufunc is np.equal else apart
        found = Decisions(same, apart if ufunc is np.equal else tied)
    else:
        found = Decisions(ufunc(a, b), _OPPOSITE[ufunc](a, b))
    if not tied.any():
        return found
    side = state.notes.side
    state.notes.ties.append(tied)
    if not side:
        return found
    says = ufunc in (_ABOVE if side > 0 else _BELOW)
    return Decisions(
        np.where(tied, says, found.yes), np.where(tied, not says, found.no)
    )


def _and(x1: Any, x2: Any) -> Decisions:
    a, b = decisions(x1), decisions(x2)
    return _kind(a, b)(a.yes & b.yes, a.no | b.no)


def _not(x: Any) -> Decisions:
    x = decisions(x)
    return type(x)(x.no, x.yes)


def _kind(*parts: Decisions) -> type[Decisions]:
    return Choices if any(isinstance(x, Choices) for x in parts) else Decisions


def _comparisons(ufunc: Any) -> None:
    def on_intervals(x1: Any, x2: Any) -> Choices:
        found = compare(ufunc, enclosures(x1), enclosures(x2))
        return Choices(found.yes, found.no)

    CALLS[ufunc] = lambda x1, x2: compare(ufunc, x1, x2)
    SERIES[ufunc] = on_intervals


for _ufunc in _OPPOSITE:
    _comparisons(_ufunc)
for _ufunc in (np.logical_and, np.bitwise_and):
    CALLS[_ufunc] = SERIES[_ufunc] = _and
for _ufunc in (np.logical_or, np.bitwise_or):
    CALLS[_ufunc] = SERIES[_ufunc] = lambda x1, x2: _not(_and(_not(x1), _not(x2)))
for _ufunc in (np.logical_not, np.invert):
    CALLS[_ufunc] = SERIES[_ufunc] = _not


def _is_finite_number(x: Any) -> Decisions:
    yes = is_finite(value_of(x))
    return Decisions(yes, np.zeros(yes.shape, bool))


def _is_finite_series(x: Any) -> Choices:
    return Choices(np.ones(x.shape, bool), np.zeros(x.shape, bool))


CALLS[np.isfinite], SERIES[np.isfinite] = _is_finite_number, _is_finite_series
CALLS[np.isnan] = CALLS[np.isinf] = lambda x: _not(_is_finite_number(x))
SERIES[np.isnan] = SERIES[np.isinf] = lambda x: _not(_is_finite_series(x))

# Choices between balls: one that is open encloses all that it may be

union = each(arb.union, 2)


def where(condition: Any, x1: Any = None, x2: Any = None) -> Balls:
    """x1 or x2, both where it is open which."""
    if x1 is None or x2 is None:
        raise UnsupportedOperationError("np.where(mask) alone has no certified value")
    found = decisions(condition)
    a, b = value_of(x1), value_of(x2)
    y, open_ = np.where(found.yes, a, b), found.is_open
    if open_.any():
        y = np.where(open_, union(a, b), y)
    weight = found.balls()
    return made(y, (x1, x2), _pulls(weight, (a, b)))


def _pulls(weight: Any, values: Any) -> list[Any]:
    """Pullbacks of a choice: a share for the first, the rest for the second."""
    shapes = [np.shape(x) for x in values]
    return [
        lambda dy: unbroadcast(times(dy, weight), shapes[0]),
        lambda dy: unbroadcast(times(dy, 1 - weight), shapes[1]),
    ]


CALLS[np.where] = where


def _extreme(best: Any, ufunc: Any) -> Any:
    def choose(x1: Any, x2: Any) -> Balls:
        weight = compare(ufunc, x1, x2).balls()
        a, b = value_of(x1), value_of(x2)
        return made(best(a, b), (x1, x2), _pulls(weight, (a, b)))

    return choose


_max, _min = each(arb.max, 2), each(arb.min, 2)
for _ufunc in (np.maximum, np.fmax):
    CALLS[_ufunc] = _extreme(_max, np.greater)
for _ufunc in (np.minimum, np.fmin):
    CALLS[_ufunc] = _extreme(_min, np.less)


def greatest(x: Any, *, axis: Any, keepdims: bool) -> Any:
    """The greatest ball, as a constant: it does not matter which one it is."""
    return _max.reduce(x, axis=axis, keepdims=keepdims)


def _candidates(x: Any, best: Any, beaten: Any) -> tuple[Any, Any]:
    """The best of each line, and which elements it may be."""
    y = best.reduce(x, axis=-1, keepdims=True)
    return y, ~np.asarray(beaten(x, y), bool)


def _chosen(x: Any, y: Any, may: Any) -> Any:
    """Which element of each line is the best: 1, 0, or open."""
    state.notes.masked = True
    several = np.sum(may, axis=-1, keepdims=True) > 1
    if not several.any():
        return np.where(may, arb(1), arb(0))
    tied = np.all(np.asarray(np.equal(x, y), bool) == may, axis=-1, keepdims=True)
    tied &= several
    if tied.any():
        state.notes.ties.append(np.squeeze(tied, -1))
    taken = np.zeros(may.shape, bool)
    lines = may[..., ::-1] if state.notes.side < 0 else may
    np.put_along_axis(taken, np.argmax(lines, -1, keepdims=True), True, -1)
    taken = taken[..., ::-1] if state.notes.side < 0 else taken
    one = np.where(taken, arb(1), arb(0))
    return np.where(several & ~tied & may, arb(0.5, 0.5), one)


def _reduction(best: Any, beaten: Any) -> Any:
    def reduce(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        x, shape = value_of(a), np.shape(value_of(a))
        lines = lined_up(x, axis)
        y, may = _candidates(lines, best, beaten)
        kept = kept_shape(shape, axis)
        final = kept if keepdims is True else y.shape[:-1]

        def pull(dy: Any) -> Any:
            share = put_back(_chosen(lines, y, may), shape, axis)
            return np.reshape(dy, kept) * share

        if np.sum(may) > y.size:
            _chosen(lines, y, may)  # notes its ties
        return made(np.reshape(y, final), (a,), [pull])

    return reduce


for _fn, _best, _beaten in ((np.max, _max, np.less), (np.min, _min, np.greater)):
    CALLS[_fn] = _reduction(_best, _beaten)
CALLS[np.amax], CALLS[np.amin] = CALLS[np.max], CALLS[np.min]


def _argument(best: Any, beaten: Any) -> Any:
    def find(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
        lines = lined_up(value_of(a), axis)
        y, may = _candidates(lines, best, beaten)
        several = np.sum(may, -1) > 1
        exact = np.all(np.asarray(np.equal(lines, y), bool) == may, axis=-1)
        state.notes.unsure.append(several & ~exact)
        found = np.argmax(may, -1)
        if keepdims is not True:
            return found
        return np.reshape(found, kept_shape(np.shape(value_of(a)), axis))

    return find


CALLS[np.argmax] = _argument(_max, np.less)
CALLS[np.argmin] = _argument(_min, np.greater)


# Choices between series have to be the same on all of an interval


def _where_of_series(condition: Any, x1: Any, x2: Any) -> Series:
    found = decisions(condition)
    note_open(found.is_open)
    like = np.empty(intervals.open.shape)
    return Series(np.where(found.yes, lifted(x1, like), lifted(x2, like)))


def _extreme_of_series(ufunc: Any) -> Any:
    return lambda x1, x2: _where_of_series(SERIES[ufunc](x1, x2), x1, x2)


def _clipped(a: Any, a_min: Any = None, a_max: Any = None, **_: Any) -> Any:
    a = a if a_min is None else np.maximum(a, a_min)
    return a if a_max is None else np.minimum(a, a_max)


SERIES[np.where] = _where_of_series
for _ufunc in (np.maximum, np.fmax):
    SERIES[_ufunc] = _extreme_of_series(np.greater)
for _ufunc in (np.minimum, np.fmin):
    SERIES[_ufunc] = _extreme_of_series(np.less)
for _ufunc in (np.absolute, np.fabs):
    SERIES[_ufunc] = lambda x: np.where(x > 0, x, -x)
SERIES[np.clip] = _clipped


def _steps(value: Any) -> Any:
    """A function that is constant but where it jumps."""

    def call(x: Any) -> Series:
        y = each(value)(enclosures(x))
        note_open(~np.asarray(each(arb.is_exact)(y), bool))
        return Series(lifted(y, y))

    return call


for _ufunc, _value in (
    (np.sign, arb.sgn), (np.floor, arb.floor), (np.ceil, arb.ceil),
):  # fmt: skip
    SERIES[_ufunc] = _steps(_value)
