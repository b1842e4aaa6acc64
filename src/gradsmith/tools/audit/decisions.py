"""Comparisons, which never guess.

A comparison of balls is true, false or open. Where it is open a choice encloses both
branches, and more bits will tell. Where both sides are exactly equal the comparison is
decided, but a derivative may jump: the point is noted, and its run is repeated with the
tie broken upwards and downwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ...core.errors import UnsupportedOperationError
from .arb import arb, balls_of
from .balls import CALLS, Balls, Plain, is_finite, value_of
from .state import state


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
    return Decisions(a.yes & b.yes, a.no | b.no)


def _not(x: Any) -> Decisions:
    x = decisions(x)
    return Decisions(x.no, x.yes)


def _comparison(ufunc: Any) -> Any:
    return lambda x1, x2: compare(ufunc, x1, x2)


for _ufunc in _OPPOSITE:
    CALLS[_ufunc] = _comparison(_ufunc)
for _ufunc in (np.logical_and, np.bitwise_and):
    CALLS[_ufunc] = _and
for _ufunc in (np.logical_or, np.bitwise_or):
    CALLS[_ufunc] = lambda x1, x2: _not(_and(_not(x1), _not(x2)))
for _ufunc in (np.logical_not, np.invert):
    CALLS[_ufunc] = _not


def _is_finite_number(x: Any) -> Decisions:
    yes = is_finite(value_of(x))
    return Decisions(yes, np.zeros(yes.shape, bool))


CALLS[np.isfinite] = _is_finite_number
CALLS[np.isnan] = CALLS[np.isinf] = lambda x: ~_is_finite_number(x)
