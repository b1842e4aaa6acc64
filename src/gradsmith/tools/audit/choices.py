"""Choices between elements: where, maximum, max, argmax, and their like.

A choice that is open encloses all that it may be.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.cotangent import unbroadcast
from ...core.errors import UnsupportedOperationError
from ...rules.axes import kept_shape, lined_up, put_back
from .arb import arb, each
from .balls import CALLS, Balls, made, times, value_of
from .decisions import compare, decisions
from .state import state

union = each(arb.union, 2)


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
