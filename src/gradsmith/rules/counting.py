"""Counting is not differentiable; summing weights by place is, in the weights."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ..core.rule import (
    composite,
    differentiable,
    index,
    nondifferentiable,
    primitive,
)
from .axes import as_array

_COUNTS = "it counts elements"

# Edges are given, or lie evenly between the least and the largest element (or the given
# limits). How many there are is constant between the points where it jumps.


@primitive
def number_of_bins(a: Any, bins: Any, limits: Any, weights: Any) -> Any:
    return len(np.histogram_bin_edges(a, bins, limits, weights)) - 1


def bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    if not isinstance(bins, str) and np.ndim(bins):
        return as_array(bins)
    a = as_array(a)
    number = int(number_of_bins(a, bins, range, weights))
    if range is not None:
        low, high = range
    elif not a.size:
        low, high = 0.0, 1.0
    else:
        low, high = np.min(a), np.max(a)
    if np.equal(low, high):
        low, high = low - 0.5, high + 0.5
    dtype = np.result_type(low, high, a)
    return np.linspace(
        low, high, number + 1, dtype=dtype if dtype.kind in "fc" else float
    )


nondifferentiable("it returns a whole number", number_of_bins)
composite(np.histogram_bin_edges, bin_edges)

# y[k] = sum of the weights whose x is k: a scatter, so its transpose is an index.
differentiable(
    np.bincount,
    (
        lambda dy, y, x, weights=None, minlength=0: None,
        lambda dy, y, x, weights=None, minlength=0: index(dy, x),
    ),
    lambda dx, y, x, weights=None, minlength=0: np.bincount(x, dx[1], minlength),
    saves="x",
    arrays=2,
)


@primitive
def histogram_counts(a: Any, bins: Any, limits: Any) -> Any:
    return np.histogram(a, bins, limits)[0]


@primitive
def histogram_sums(a: Any, weights: Any, bins: Any, limits: Any) -> Any:
    return np.histogram(a, bins, limits, weights=weights)[0]


def histogram(
    a: Any,
    bins: Any = 10,
    range: Any = None,
    density: Any = None,
    weights: Any = None,
) -> Any:
    edges = bin_edges(a, bins, range, weights)
    if weights is None:
        y = histogram_counts(a, bins, range)
    else:
        y = histogram_sums(a, weights, bins, range)
    return (y / np.diff(edges) / np.sum(y) if density else y), edges


# Each weight gets the cotangent of its bin; the last bin includes its right edge.
def weights_of_histogram(
    dy: Any, y: Any, a: Any, weights: Any, bins: Any, limits: Any
) -> Any:
    edges = np.histogram_bin_edges(a, bins, limits)
    bin_of = np.searchsorted(edges, a, "right") - 1 - np.equal(a, edges[-1])
    outside = np.logical_or(bin_of < 0, bin_of >= y.size)
    return np.where(outside, 0, dy[np.where(outside, 0, bin_of)])


nondifferentiable(_COUNTS, histogram_counts)
composite(np.histogram, histogram)
differentiable(
    histogram_sums,
    (lambda dy, y, a, weights, bins, limits: None, weights_of_histogram),
    lambda dx, y, a, weights, bins, limits: histogram_sums(a, dx[1], bins, limits),
    saves="a",
    arrays=2,
)


# In several dimensions NumPy itself numbers the bins, outliers included, and counts.


@primitive
def places(sample: Any, limits: Any, *bins: Any) -> Any:
    """The bin of each sample, and how many bins there are."""
    edges = np.histogramdd(sample, bins, limits)[1]
    numbers = [
        np.searchsorted(e, x, "right") - (x == e[-1])
        for e, x in zip(edges, sample.T, strict=True)
    ]
    shape = tuple(len(e) + 1 for e in edges)
    return np.ravel_multi_index(numbers, shape), shape


@primitive
def histogramdd_counts(sample: Any, limits: Any, *bins: Any) -> Any:
    return np.histogramdd(sample, bins, limits)[0]


nondifferentiable(_COUNTS, places, histogramdd_counts)


def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Any = None,
    density: Any = None,
    weights: Any = None,
) -> Any:
    if isinstance(sample, (list, tuple)):
        sample = np.stack(sample, axis=-1)
    sample = np.reshape(sample, (len(sample), -1))
    bins = bins if hasattr(bins, "__len__") else [bins] * sample.shape[1]
    edges = [
        bin_edges(sample[:, i], each, None if range is None else range[i])
        for i, each in enumerate(bins)
    ]
    if weights is None:
        y = histogramdd_counts(sample, range, *bins)
    else:
        bin_of, shape = places(sample, range, *bins)
        y = np.reshape(np.bincount(bin_of, weights, prod(shape)), shape)
        y = y[(slice(1, -1),) * len(shape)]
    if density:
        total = np.sum(y)
        for i, each in enumerate(edges):
            widths = np.diff(each)
            y = y / np.reshape(widths, (-1,) + (1,) * (y.ndim - 1 - i))
        y = y / total
    return y, edges


def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Any = None,
    density: Any = None,
    weights: Any = None,
) -> Any:
    if hasattr(bins, "__len__") and len(bins) > 2:
        bins = [bins, bins]
    counts, (xedges, yedges) = histogramdd([x, y], bins, range, density, weights)
    return counts, xedges, yedges


composite(np.histogramdd, histogramdd, lists=True)
composite(np.histogram2d, histogram2d)
