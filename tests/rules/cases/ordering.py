"""Cases of the functions that choose elements: maxima, sorting, quantiles, clipping."""

from __future__ import annotations

import numpy as np

from tests.rules.cases.reductions import MASK, ROW, T, X, Z, adder, ignoring, real
from tests.rules.harness import Case

CASES: list[Case] = []
add = adder(CASES)

# maxima and minima
for _fn in (np.max, np.amax, np.min, np.amin, np.nanmax, np.nanmin, np.ptp):
    for _options in (
        {},
        {"axis": 0},
        {"axis": -1, "keepdims": True},
        {"axis": (0, 1), "keepdims": True},
    ):
        add(_fn, X, **_options)
    add(_fn, T, axis=(0, -1))
    add(_fn, T.transpose(2, 0, 1), axis=(1, 2))
    add(_fn, real())
    add(_fn, real(3, 1), axis=1)
    add(_fn, real(0, 3), axis=1)
    add(_fn, Z, axis=0)
for _fn in (np.max, np.min):
    add(_fn, X, initial=0.1, axis=1)
    add(_fn, X, initial=0.1, axis=1, where=MASK)
    add(_fn, X, initial=-10 if _fn is np.max else 10, where=ROW)
add(ignoring(np.nanmax), X, axis=1, name="holes-nanmax")
add(ignoring(np.nanmin), X, name="holes-nanmin")
for _ufunc in (np.maximum, np.minimum, np.fmax, np.fmin):
    _name = f"{_ufunc.__name__}.reduce"
    add(_ufunc.reduce, X, name=_name)
    add(_ufunc.reduce, T, axis=(0, 2), keepdims=True, name=_name)
    add(_ufunc.reduce, X, axis=None, initial=0.2, where=MASK, name=_name)
for _ufunc in (np.maximum, np.minimum):
    _name = f"{_ufunc.__name__}.accumulate"
    add(_ufunc.accumulate, X, name=_name)
    add(_ufunc.accumulate, T, axis=1, name=_name)
    add(_ufunc.accumulate, real(9), name=_name)

# sorting
for _x in (real(5), T, Z, real(1), real(0), real(3, 0)):
    add(np.sort, _x)
for _x in (real(5), T, Z, real(1), real(0, 3)):
    add(np.partition, _x, 0)
add(np.sort, T, axis=None)
add(np.sort, T, axis=1, kind="stable")
add(np.sort, T, axis=0, stable=True)
add(np.sort, X.T, 0, name="sort-by-position")
add(np.partition, real(9), 4, name="partition-middle")
add(np.partition, T, 2, axis=-1, name="partition-last")
add(np.partition, real(7), [1, 5], name="partition-list")
add(np.partition, X, 5, axis=None, name="partition-flat")
add(np.sort_complex, real(5), float32=True)
add(np.sort_complex, Z)

# medians and quantiles
for _fn in (np.median, np.nanmedian):
    add(_fn, X)
    add(_fn, X, axis=0)
    add(_fn, X, axis=1, keepdims=True)
    add(_fn, T, axis=(0, 2))
    add(_fn, T, axis=(2, 0), keepdims=True)
    add(_fn, real(7))
    add(_fn, real())
    add(_fn, real(0, 3), axis=1)
add(ignoring(np.nanmedian), X, axis=1, name="holes-nanmedian")
add(np.median, real(5), overwrite_input=True)
METHODS = [
    "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
    "interpolated_inverted_cdf", "hazen", "weibull", "linear", "median_unbiased",
    "normal_unbiased", "lower", "higher", "midpoint", "nearest",
]  # fmt: skip
for _method in METHODS:
    add(np.quantile, real(8), 0.3, method=_method, name="quantile")
    add(np.quantile, X, [0.0, 0.45, 1.0], axis=1, method=_method, name="quantiles")
    add(np.percentile, T, 71, axis=(0, 2), method=_method, name="percentile")
    add(
        ignoring(np.nanquantile), X, q=[0.2, 0.6], axis=1, method=_method,
        name="holes-nanquantile",
    )  # fmt: skip
add(np.quantile, X, [[0.1, 0.2], [0.5, 0.9]], axis=0, keepdims=True)
add(np.quantile, X, 0.3, None, None, False, "hazen", True, name="quantile-by-position")
add(np.quantile, real(), 0.3)
add(np.percentile, real(5), [10, 50])
add(np.percentile, T.T, [10, 50], axis=(0, -1), keepdims=True)
add(np.nanpercentile, X, 30, axis=0)
add(ignoring(np.nanpercentile), X, q=[30, 100], name="holes-nanpercentile")
WEIGHTS = np.array([1.0, 0.0, 2.0, 1.5])
add(np.quantile, X, 0.4, axis=1, weights=WEIGHTS, method="inverted_cdf")
add(np.quantile, X, [0.4, 0.9], axis=1, weights=np.tile(WEIGHTS, (3, 1)),
    method="inverted_cdf")  # fmt: skip
add(np.percentile, X, 40, axis=0, weights=np.array([1, 2, 3]), method="inverted_cdf")

# clipping and other pointwise functions
add(np.clip, X, -0.5, 0.7, name="clip-numbers")
add(np.clip, X, np.full(4, -0.5), np.full((3, 1), 0.7), name="clip-arrays")
add(np.clip, X, np.full(4, 0.7), np.full((3, 1), -0.5), name="clip-wrong-order")
add(np.clip, X, None, 0.3, name="clip-above")
add(np.clip, X, 0.3, None, name="clip-below")
add(np.clip, X, None, None, name="clip-not")
add(np.clip, X, min=-0.4, max=0.9)
add(np.clip, X, min=-0.4)
add(np.clip, X, max=0.9)
add(np.clip, X, np.asarray(-0.4), None, name="clip-below-array")
add(np.clip, real(), -10, 10, name="clip-0d")
add(np.nan_to_num, X)
add(np.nan_to_num, Z, nan=1.0)
add(np.angle, Z)
add(np.angle, Z, deg=True)
add(np.angle, X)
add(np.unwrap, 4 * X)
add(np.unwrap, 4 * X, axis=0, period=3.0)
add(np.i0, 3 * X)
add(np.i0, np.array([0.0, 24.9, 25.1, -30.0]), step=1e-2, name="i0-far")
