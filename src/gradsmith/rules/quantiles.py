"""Medians and quantiles.

NumPy has thirteen methods, and all of them interpolate between two successive elements
of the sorted line. Where, they tell themselves: the quantile of 0, 1, 2, ... is the
place in the line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..core.rule import composite, differentiable, primitive
from .axes import aligned_weights, as_type, lined_up, put_back, refuse_out
from .ordering import from_tied, to_tied, transposes

_IGNORING_NAN = (np.nanmedian, np.nanquantile, np.nanpercentile)


@primitive
def quantile(a: Any, fn: Any, axis: Any, keepdims: bool, options: Any) -> Any:
    """A quantile by NumPy's own function: `np.median`, `np.nanpercentile`, ..."""
    return fn(a, axis=axis, keepdims=keepdims, **options)


@primitive
def to_ranks(dy: Any, x: Any, chosen: Any, fn: Any, axis: Any, options: Any) -> Any:
    """Share dy among the elements that a quantile was interpolated from."""
    lines = lined_up(x, axis)
    dx = np.zeros(lines.shape, dy.dtype)
    dys = dy.reshape(_stacked(lines, options))
    for k, weight, value, where in _ranks(lines, x, chosen, fn, axis, options):
        dx += to_tied(as_type(weight * dys[k], dy.dtype), lines, value, where)
    return put_back(dx, x.shape, axis)


@primitive
def from_ranks(dx: Any, x: Any, chosen: Any, fn: Any, axis: Any, options: Any) -> Any:
    """Interpolate dx between the elements that a quantile was interpolated from."""
    lines, dx = lined_up(x, axis), lined_up(dx, axis)
    dys = np.zeros(_stacked(lines, options), dx.dtype)
    for k, weight, value, where in _ranks(lines, x, chosen, fn, axis, options):
        dys[k] += weight * from_tied(dx, lines, value, where)
    return dys.reshape(chosen.shape)


def _stacked(lines: Any, options: Any) -> tuple[int, ...]:
    """The shape of all quantiles of the lines, one behind the other."""
    return np.size(options.get("q", 0.5)), *lines.shape[:-1], 1


def _ranks(
    lines: Any, x: Any, chosen: Any, fn: Any, axis: Any, options: Any
) -> Iterator[tuple[int, Any, Any, Any]]:
    """For the k-th quantile: a weight, the value it belongs to, and where to look."""
    if not lines.size:
        return
    weights = options.get("weights")
    if weights is not None:  # then the method chooses one element
        aligned = np.broadcast_to(aligned_weights(weights, x.shape, axis), x.shape)
        where = lined_up(aligned > 0, axis)
        for k, value in enumerate(chosen.reshape(_stacked(lines, options))):
            yield k, 1, value, where
        return
    places = np.broadcast_to(_places(lines, fn, options), _stacked(lines, options))
    low = np.floor(places).astype(int)
    high = np.minimum(low + 1, lines.shape[-1] - 1)
    ordered = np.partition(lines, np.unique([low, high]), axis=-1)
    for k, share in enumerate(places - low):
        for weight, rank in ((1 - share, low[k]), (share, high[k])):
            if np.any(weight):
                yield k, weight, np.take_along_axis(ordered, rank, axis=-1), True


def _places(lines: Any, fn: Any, options: Any) -> Any:
    """Where in the sorted lines the quantiles are; between two, not a whole number."""
    n = lines.shape[-1]
    ramp = np.arange(n, dtype=float)
    if fn in _IGNORING_NAN:
        numbers = n - np.count_nonzero(np.isnan(lines), axis=-1, keepdims=True)
        ramp = np.where((ramp < numbers) | (numbers == 0), ramp, np.nan)
    places = fn(ramp, axis=-1, **options)
    rest = ramp.shape[:-1] or (1,) * (lines.ndim - 1)
    return np.reshape(places, (np.size(options.get("q", 0.5)), *rest, 1))


transposes(from_ranks, to_ranks)
differentiable(
    quantile,
    lambda dy, y, a, fn, axis, keepdims, options: to_ranks(dy, a, y, fn, axis, options),
    lambda dx, y, a, fn, axis, keepdims, options: from_ranks(
        dx, a, y, fn, axis, options
    ),
    saves="a y",
    note="the tied share equally; constant in q and in the weights",
)


# `overwrite_input` only allows NumPy to save a copy; here x must stay as it is.
def _median(fn: Any) -> Any:
    def median(
        a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False,
        keepdims: Any = False,
    ) -> Any:  # fmt: skip
        refuse_out(fn, out)
        return quantile(a, fn, axis, keepdims, {})

    return median


def _quantile(fn: Any) -> Any:
    def of_fraction(
        a: Any, q: Any, axis: Any = None, out: Any = None,
        overwrite_input: bool = False, method: str = "linear", keepdims: Any = False,
        *, weights: Any = None,
    ) -> Any:  # fmt: skip
        refuse_out(fn, out)
        options = {"q": q, "method": method, "weights": weights}
        return quantile(a, fn, axis, keepdims, options)

    return of_fraction


for _fn in (np.median, np.nanmedian):
    composite(_fn, _median(_fn), note="the tied share equally")
for _fn in (np.quantile, np.percentile, np.nanquantile, np.nanpercentile):
    composite(_fn, _quantile(_fn), note="the tied share equally")
