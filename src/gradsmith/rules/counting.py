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

_COUNTS = "it counts, and takes the edges of its bins as constants"
nondifferentiable(_COUNTS, np.histogram_bin_edges)

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
def histogram_counts(*args: Any) -> Any:
    return np.histogram(*args)


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
    if weights is None:
        return histogram_counts(a, bins, range, density)
    edges = np.histogram_bin_edges(a, bins, range)
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
    """The edges of all bins, the bin of each sample, and how many bins there are."""
    edges = np.histogramdd(sample, bins, limits)[1]
    numbers = [
        np.searchsorted(e, x, "right") - (x == e[-1])
        for e, x in zip(edges, sample.T, strict=True)
    ]
    shape = tuple(len(e) + 1 for e in edges)
    return edges, np.ravel_multi_index(numbers, shape), shape


@primitive
def histogramdd_counts(sample: Any, limits: Any, density: Any, *bins: Any) -> Any:
    return np.histogramdd(sample, bins, limits, density)


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
    if weights is None:
        return histogramdd_counts(sample, range, density, *bins)
    edges, bin_of, shape = places(sample, range, *bins)
    y = np.reshape(np.bincount(bin_of, weights, prod(shape)), shape)
    y = y[(slice(1, -1),) * len(shape)]
    if density:
        total = np.sum(y)
        for widths in np.ix_(*map(np.diff, edges)):
            y = y / widths
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


composite(np.histogramdd, histogramdd)
composite(np.histogram2d, histogram2d)
