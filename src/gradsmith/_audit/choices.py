"""Comparisons and choices, which never guess.

A comparison of balls is true, false or open. Where it is open a choice encloses both
branches, and more bits will tell. Where both sides are exactly equal the comparison is
decided, but a derivative may jump: the point is noted, and its run is repeated with the
tie broken upwards and downwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .._cotangent import unbroadcast
from .._errors import UnsupportedOperationError
from ..rules.axes import kept_shape, lined_up, put_back
from .arb import arb, balls_of, each, ones
from .balls import CALLS, Balls, Plain, constant, made, value_of
from .state import state

union = each(arb.union, 2)


class Decisions(NDArrayOperatorsMixin, Plain):
    """Where something is true, and where it is false; elsewhere it is open."""

    __slots__ = ("dtype", "no", "yes")

    def __init__(self, yes: Any, no: Any) -> None:
        self.yes, self.no = np.asarray(yes, bool), np.asarray(no, bool)
        self.dtype = np.dtype(bool)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.yes.shape

    @property
    def ndim(self) -> int:
        return self.yes.ndim

    def balls(self) -> Any:
        """1 where true, 0 where false, and a ball of both where open."""
        state.notes.masked = True
        y = np.where(self.yes, arb(1), arb(0))
        open_ = ~(self.yes | self.no)
        return np.where(open_, arb(0.5, 0.5), y) if open_.any() else balls_of(y)

    def astype(self, dtype: Any, **_: Any) -> Any:
        return self if dtype in (bool, np.bool_) else Balls(self.balls())

    def __bool__(self) -> bool:
        if self.yes.size == 1 and (self.yes.all() or self.no.all()):
            return bool(self.yes.all())
        raise UnsupportedOperationError(
            "a definition that is audited decides by np.where, not by `if` on a "
            "comparison, whose elements may differ or be undecided"
        )

    __array_ufunc__ = Balls.__array_ufunc__
    __array_function__ = Balls.__array_function__


def decisions(x: Any) -> Decisions:
    """Truth values, decided ones if they are plain."""
    if isinstance(x, Decisions):
        return x
    if isinstance(x, Balls):
        return _compare(np.not_equal, x, 0)
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


def _compare(ufunc: Any, x1: Any, x2: Any) -> Decisions:
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
    return Decisions(a.yes & b.yes, a.no | b.no)


def _not(x: Any) -> Decisions:
    x = decisions(x)
    return Decisions(x.no, x.yes)


def _comparison(ufunc: Any) -> Any:
    return lambda x1, x2: _compare(ufunc, x1, x2)


for _ufunc in _OPPOSITE:
    CALLS[_ufunc] = _comparison(_ufunc)
for _ufunc in (np.logical_and, np.bitwise_and):
    CALLS[_ufunc] = _and
for _ufunc in (np.logical_or, np.bitwise_or):
    CALLS[_ufunc] = lambda x1, x2: _not(_and(_not(x1), _not(x2)))
for _ufunc in (np.logical_not, np.invert):
    CALLS[_ufunc] = _not


def where(condition: Any, x1: Any = None, x2: Any = None) -> Balls:
    """x1 or x2, both where it is open which."""
    if x1 is None or x2 is None:
        raise UnsupportedOperationError("np.where(mask) alone has no certified value")
    found = decisions(condition)
    a, b = value_of(x1), value_of(x2)
    y = np.where(found.yes, a, b)
    open_ = ~(found.yes | found.no)
    if open_.any():
        y = np.where(open_, union(a, b), y)
    weight = found.balls()
    return made(y, (x1, x2), _pulls(weight, (a, b)))


def _pulls(weight: Any, values: Any) -> list[Any]:
    """Pullbacks of a choice: a share for the first, the rest for the second."""
    from .balls import times

    shapes = [np.shape(x) for x in values]
    return [
        lambda dy: unbroadcast(times(dy, weight), shapes[0]),
        lambda dy: unbroadcast(times(dy, 1 - weight), shapes[1]),
    ]


CALLS[np.where] = where


def _extreme(best: Any, ufunc: Any) -> Any:
    def choose(x1: Any, x2: Any) -> Balls:
        weight = _compare(ufunc, x1, x2).balls()
        a, b = value_of(x1), value_of(x2)
        return made(best(a, b), (x1, x2), _pulls(weight, (a, b)))

    return choose


_max, _min = each(arb.max, 2), each(arb.min, 2)
for _ufunc in (np.maximum, np.fmax):
    CALLS[_ufunc] = _extreme(_max, np.greater)
for _ufunc in (np.minimum, np.fmin):
    CALLS[_ufunc] = _extreme(_min, np.less)


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


def _is_finite_number(x: Any) -> Decisions:
    from .balls import is_finite

    yes = is_finite(value_of(x))
    return Decisions(yes, np.zeros(yes.shape, bool))


CALLS[np.isfinite] = _is_finite_number
CALLS[np.isnan] = CALLS[np.isinf] = lambda x: ~_is_finite_number(x)
CALLS[np.ones_like] = lambda a, *_, **__: constant(ones(a.shape), a)
