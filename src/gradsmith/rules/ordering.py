"""Maxima, minima and sorting: functions that choose elements.

Each is linear, with coefficients that are constant until the order of the elements
changes. So a rule is a pair of primitives, one the other's transpose, that know x and
what was chosen from it, and are constant in both. Elements that tie share equally.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..core.cotangent import OnePerRow, Scattered
from ..core.escapes import is_followed, tell_lost
from ..core.pool import SMALLEST, compared, zeros
from ..core.rule import REDUCTIONS, composite, differentiable, primitive
from ..core.shapes import broadcast_axes
from ..core.symbolic import Symbolic
from ..core.tape import Traced
from .axes import (
    NoValue,
    as_type,
    is_given,
    kept_shape,
    reshaped,
    swapped,
    swapped_back,
)
from .reductions import by_method, by_ufunc
from .running import scan, scan_back


def transposes(push: Any, pull: Any) -> None:
    """Declare two primitives, linear in the first argument, as one another's transpose.

    Their second and third arguments, x and what was chosen, are constants to them.
    """
    for fn, transpose in ((push, pull), (pull, push)):
        differentiable(
            fn,
            (_linear_vjp(transpose), None, None),
            _linear_jvp(fn),
            saves="x chosen",
            arrays=3,
        )


def _linear_vjp(transpose: Any) -> Any:
    return lambda dy, y, d, x, chosen, *options: transpose(dy, x, chosen, *options)


def _linear_jvp(fn: Any) -> Any:
    return lambda ds, y, d, x, chosen, *options: fn(ds[0], x, chosen, *options)


# Maxima and minima


@primitive
def to_tied(
    dy: Any, x: Any, chosen: Any, where: Any = True, initial: Any = None
) -> Any:
    """Share dy among the elements of x that equal the chosen one."""
    ties = _ties(x, chosen, where)
    dx = None if is_given(initial) else _to_single(dy, ties, chosen)
    if dx is not None:
        return dx
    return np.where(ties, _over_count(dy, ties, chosen, initial), 0)


def _to_single(dy: Any, ties: Any, chosen: Any) -> Any:
    """`to_tied` along the last axis if nothing ties, as mostly; else None.

    The shares are written to the places one after the other: of 1000 rows of 10 numbers
    in 4 us, of 10,000 rows of 100 in 250; by np.where it takes 7 and 605.
    """
    plain = ties.__class__ is dy.__class__ is chosen.__class__ is np.ndarray
    if not plain or chosen.shape[:-1] != ties.shape[:-1] or chosen.dtype.kind != "f":
        return None
    if dy.shape != chosen.shape:  # several at a time, in front
        return None
    places = _single_places(ties, chosen)
    if places is None:
        return None
    dx = zeros(ties.shape, dy.dtype)
    dx.reshape(-1)[places] = dy.reshape(-1)
    return dx


def _single_places(ties: Any, chosen: Any) -> Any:
    """Where the one element of each row is that equals the chosen one.

    None if one ties, or is NaN.
    """
    places = ties.reshape(-1).nonzero()[0]
    return None if len(places) != chosen.size or _has_nan(chosen) else places


WIDE = 32  # columns, from which on sums of few elements beat products with many zeros


def to_rows(dy: Any, x: Any, chosen: Any) -> OnePerRow | None:
    """`to_tied` along the rows of a large matrix; None if it is none, or rows tie."""
    if x.nbytes < SMALLEST or chosen.shape != (len(x), 1) or x.shape[1] < WIDE:
        return None
    alike = dy.dtype is x.dtype is chosen.dtype
    if not alike or x.dtype.char not in "fd":
        return None
    places = _single_places(_ties(x, chosen, True), chosen)
    if places is None:
        return None
    places -= np.arange(0, x.size, x.shape[1])
    return OnePerRow(places, dy.reshape(-1), x.shape)


def to_few(dy: Any, x: Any, chosen: Any, where: Any, initial: Any) -> Scattered:
    """`to_tied` for one chosen element of all: few of many get a share."""
    places = np.nonzero(_ties(x, chosen, where))
    count = len(places[0]) + int(is_given(initial) and bool(chosen == initial))
    share = dy.reshape(()) / max(count, 1)
    return Scattered(places, share, x.shape, distinct=True)


@primitive
def from_tied(
    dx: Any, x: Any, chosen: Any, where: Any = True, initial: Any = None
) -> Any:
    """The mean of dx over the elements of x that equal the chosen one.

    dx may have more axes in front, of several tangents.
    """
    ties = _ties(x, chosen, where)
    axes = tuple(i - x.ndim for i in broadcast_axes(x.shape, chosen.shape))
    total = np.sum(dx, axis=axes, keepdims=True, where=ties)
    return _over_count(total, ties, chosen, initial)


def _ties(x: Any, chosen: Any, where: Any) -> Any:
    """Which elements equal the chosen one."""
    ties = compared(np.equal, x, chosen)
    return ties if where is True or where is NoValue else ties & where


def _over_count(d: Any, ties: Any, chosen: Any, initial: Any) -> Any:
    """d over the number of ties; an `initial` that ties takes its share."""
    if not is_given(initial) and _are_single(ties, chosen):
        return d
    axes = broadcast_axes(ties.shape, chosen.shape)
    count = np.count_nonzero(ties, axis=axes, keepdims=True)
    if is_given(initial):
        count = count + (chosen == initial)
    return np.divide(d, np.maximum(count, 1), dtype=d.dtype)


def _are_single(ties: Any, chosen: Any) -> bool:
    """Whether nothing ties, as mostly: counted for each in ten times the time."""
    if ties.__class__ is not np.ndarray or isinstance(chosen, (Traced, Symbolic)):
        return False
    if np.count_nonzero(ties) != chosen.size:
        return False
    return chosen.dtype.kind == "f" and not _has_nan(chosen)


def _has_nan(chosen: Any) -> bool:
    """Whether there is a NaN, which equals nothing; of 1000 elements in 0.4 us.

    It is in the sum of squares, where infinite numbers make none.
    """
    line = chosen.reshape(-1)
    total = line.dot(line)
    return bool(total != total)


transposes(from_tied, to_tied)


# Which element is chosen does not change with x. So nothing of this is recorded unless
# dy is: a Hessian times a vector, of the minima of 1000 x 10 numbers, takes 0.7 of the
# time (215 us instead of 318).
def _constant(x: Any) -> Any:
    """The plain value of x, which an outer tape takes as a constant."""
    if not isinstance(x, Traced):
        return x
    tell_lost([x], "the gradient of a maximum or minimum", _CHOSEN)
    return x.value


_CHOSEN = "it is constant until another element is chosen"


def _unfollowed(dy: Any) -> Any:
    """dy, as a plain array if nobody differentiates it."""
    return dy.value if isinstance(dy, Traced) and not is_followed(dy) else dy


def extremum_vjp(
    dy: Any, y: Any, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
    initial: Any = None, where: Any = True,
) -> Any:  # fmt: skip
    dy, a, y = _unfollowed(dy), _constant(a), _constant(y)
    plain = isinstance(a, np.ndarray) and isinstance(dy, (np.ndarray, np.generic))
    if plain and y.size == 1 and a.ndim:
        return to_few(dy, a, y, where, initial)
    kept = kept_shape(a.shape, axis)
    dy, y = reshaped(dy, kept), reshaped(y, kept)
    all_are = (where is True or where is NoValue) and not is_given(initial)
    if (
        all_are
        and a.ndim == 2
        and a.__class__ is y.__class__ is dy.__class__ is np.ndarray
    ):
        dx = to_rows(dy, a, y)
        if dx is not None:
            return dx
    return to_tied(dy, a, y, where, initial)


def extremum_jvp(
    dx: Any, y: Any, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
    initial: Any = None, where: Any = True,
) -> Any:  # fmt: skip
    chosen = np.reshape(y, kept_shape(a.shape, axis))
    return np.reshape(from_tied(dx, a, chosen, where, initial), y.shape)


def across(choose: Any, reduce: Any, a: Any, axis: Any) -> Any:
    """`reduce(a, axis)` along rows, all rows at once; None where that is slower.

    With 1000 rows of 10 numbers NumPy takes 29 us along them, and 6 from row to row;
    with 1000 of 100 it takes 46, and 16 if `choose` tells which ones to take.
    """
    n = a.shape[-1] if a.ndim > 1 else 0
    if not 1 < n <= 1000 or a.size < 64 * n or a.dtype.kind != "f":
        return None
    if axis.__class__ is not int or axis not in (-1, a.ndim - 1):
        return None
    rows = a.reshape(-1, n)
    if n <= 16:
        return reduce(np.ascontiguousarray(rows.T), 0).reshape(a.shape[:-1])
    chosen = choose(rows, 1)
    chosen += np.arange(0, rows.size, n)
    return rows.reshape(-1)[chosen].reshape(a.shape[:-1])


@primitive
def fmax_reduce(a: Any, axis: Any = 0, **options: Any) -> Any:
    return np.fmax.reduce(a, axis, **options)


@primitive
def fmin_reduce(a: Any, axis: Any = 0, **options: Any) -> Any:
    return np.fmin.reduce(a, axis, **options)


for _fn in (np.max, np.amax, np.min, np.amin, np.nanmax, np.nanmin):
    differentiable(
        _fn, extremum_vjp, extremum_jvp, saves="a y", note="the tied share equally"
    )
by_ufunc(np.max, np.maximum, partial(across, np.ndarray.argmax))
by_ufunc(np.min, np.minimum, partial(across, np.ndarray.argmin))
for _fn in (fmax_reduce, fmin_reduce):
    differentiable(
        _fn,
        lambda dy, y, a, axis=0, **options: extremum_vjp(dy, y, a, axis, **options),
        lambda dx, y, a, axis=0, **options: extremum_jvp(dx, y, a, axis, **options),
        saves="a y",
        note="the tied share equally",
    )


def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Any:
    return np.max(a, axis=axis, keepdims=keepdims) - np.min(
        a, axis=axis, keepdims=keepdims
    )


composite(np.ptp, ptp, note="the tied share equally")


@primitive
def maximum_accumulate(a: Any, axis: int = 0, dtype: Any = None) -> Any:
    return np.maximum.accumulate(a, axis, dtype)


@primitive
def minimum_accumulate(a: Any, axis: int = 0, dtype: Any = None) -> Any:
    return np.minimum.accumulate(a, axis, dtype)


# Where y stays the same it is the mean of those x so far that equal it: a running sum
# that begins anew where y changes.
def _record_runs(x: Any, y: Any) -> tuple[Any, Any, Any]:
    """Where y goes on as before, where x equals it, and among how many so far."""
    before = np.concatenate([np.full_like(y[..., :1], np.nan), y[..., :-1]], axis=-1)
    stays, equal = as_type(y == before, x.dtype), as_type(x == y, x.dtype)
    return stays, equal, np.maximum(scan(stays, equal), 1)


def accumulate_vjp(dy: Any, y: Any, a: Any, axis: int = 0, dtype: Any = None) -> Any:
    lines = swapped(y, axis)
    stays, equal, count = _record_runs(swapped(as_type(a, y.dtype), axis), lines)
    dx = equal * scan_back(stays, swapped(dy, axis) / count)
    return swapped_back(dx, a.shape, axis)


def accumulate_jvp(dx: Any, y: Any, a: Any, axis: int = 0, dtype: Any = None) -> Any:
    lines = swapped(y, axis)
    stays, equal, count = _record_runs(swapped(as_type(a, y.dtype), axis), lines)
    dy = scan(stays, equal * swapped(dx, axis)) / count
    return swapped_back(dy, y.shape, axis)


for _fn in (maximum_accumulate, minimum_accumulate):
    differentiable(
        _fn, accumulate_vjp, accumulate_jvp, saves="a y", note="the tied share equally"
    )

# Sorting


@primitive
def carried(d: Any, x: Any, chosen: Any) -> Any:
    """Carry d from the places of x to those of `chosen`, a rearrangement of x.

    Along the last axis; values of d whose x tie are replaced by their mean.
    """
    source = np.argsort(x, axis=-1, kind="stable")
    target = np.argsort(chosen, axis=-1, kind="stable")
    d = np.take_along_axis(d, source, axis=-1)
    d = _mean_of_ties(d, np.take_along_axis(x, source, axis=-1))
    arranged = np.empty_like(d)
    np.put_along_axis(arranged, target, d, axis=-1)
    return arranged


def _mean_of_ties(d: Any, x: Any) -> Any:
    """d with its mean wherever successive elements of the sorted x are equal."""
    new = np.ones(x.shape, bool)
    new[..., 1:] = x[..., 1:] != x[..., :-1]
    if new.all():
        return d
    starts = np.flatnonzero(new)
    counts = np.diff(starts, append=x.size)
    means = np.divide(np.add.reduceat(d.reshape(-1), starts), counts, dtype=d.dtype)
    return np.repeat(means, counts).reshape(d.shape)


differentiable(
    carried,
    (lambda dy, y, d, x, chosen: carried(dy, chosen, x), None, None),
    lambda ds, y, d, x, chosen: carried(ds[0], x, chosen),
    saves="x chosen",
    arrays=3,
)


def rearranged_vjp(dy: Any, y: Any, a: Any, axis: Any) -> Any:
    dx = carried(swapped(dy, axis), swapped(y, axis), swapped(a, axis))
    return swapped_back(dx, a.shape, axis)


def rearranged_jvp(dx: Any, y: Any, a: Any, axis: Any) -> Any:
    dy = carried(swapped(dx, axis), swapped(a, axis), swapped(y, axis))
    return swapped_back(dy, y.shape, axis)


differentiable(
    np.sort,
    lambda dy, y, a, axis=-1, *_, **__: rearranged_vjp(dy, y, a, axis),
    lambda dx, y, a, axis=-1, *_, **__: rearranged_jvp(dx, y, a, axis),
    saves="a y",
    note="the tied share equally",
)
differentiable(
    np.partition,
    lambda dy, y, a, kth, axis=-1, *_, **__: rearranged_vjp(dy, y, a, axis),
    lambda dx, y, a, kth, axis=-1, *_, **__: rearranged_jvp(dx, y, a, axis),
    saves="a y",
    note="the tied share equally",
)


def sort_complex(a: Any) -> Any:
    if a.dtype.kind == "c":
        return np.sort(a)
    wide = np.clongdouble if a.dtype == np.longdouble else np.complex128
    return np.astype(np.sort(a), wide)


composite(np.sort_complex, sort_complex, note="the tied share equally")

REDUCTIONS.update(
    {
        (np.maximum, "reduce"): by_method(np.max),
        (np.minimum, "reduce"): by_method(np.min),
        (np.fmax, "reduce"): fmax_reduce,
        (np.fmin, "reduce"): fmin_reduce,
        (np.maximum, "accumulate"): maximum_accumulate,
        (np.minimum, "accumulate"): minimum_accumulate,
    }
)
