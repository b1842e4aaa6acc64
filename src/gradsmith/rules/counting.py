"""Counting is not differentiable; summing weights by place is, in the weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._errors import UnsupportedOperationError
from .._rule import composite, differentiable, nondifferentiable, primitive
from .indexing import index

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
def histogram_sums(a: Any, weights: Any, bins: Any, range: Any) -> Any:
    return np.histogram(a, bins, range, weights=weights)[0]


def histogram(
    a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> Any:
    if weights is None:
        return histogram_counts(a, bins, range, density)
    edges = np.histogram_bin_edges(a, bins, range)
    y = histogram_sums(a, weights, bins, range)
    return (y / np.diff(edges) / np.sum(y) if density else y), edges


# Each weight gets the cotangent of its bin; the last bin includes its right edge.
def weights_of_histogram(
    dy: Any, y: Any, a: Any, weights: Any, bins: Any, range: Any
) -> Any:
    edges = np.histogram_bin_edges(a, bins, range)
    bin_of = np.searchsorted(edges, a, "right") - 1 - np.equal(a, edges[-1])
    outside = np.logical_or(bin_of < 0, bin_of >= y.size)
    return np.where(outside, 0, dy[np.where(outside, 0, bin_of)])


nondifferentiable(_COUNTS, histogram_counts)
composite(np.histogram, histogram)
differentiable(
    histogram_sums,
    (lambda dy, y, a, weights, bins, range: None, weights_of_histogram),
    lambda dx, y, a, weights, bins, range: histogram_sums(a, dx[1], bins, range),
    saves="a",
    arrays=2,
)


def unweighted(fn: Any, name: str, nargs: int) -> Any:
    """A histogram function that counts, and refuses weights, its last argument."""

    @primitive
    def count(*args: Any) -> Any:
        return fn(*args)

    def definition(*args: Any, weights: Any = None, **options: Any) -> Any:
        if weights is not None or len(args) > nargs:
            raise UnsupportedOperationError(
                f"{name} has no gradient for its weights. Give each sample the number "
                "of its bin (np.digitize, np.ravel_multi_index), then np.bincount them."
            )
        return count(*args, **options)

    nondifferentiable(_COUNTS, count)
    return definition


composite(np.histogram2d, unweighted(np.histogram2d, "np.histogram2d", 5))
composite(np.histogramdd, unweighted(np.histogramdd, "np.histogramdd", 4))
