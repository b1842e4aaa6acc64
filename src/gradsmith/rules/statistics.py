"""Averages, variances and correlations."""

from __future__ import annotations

from math import prod, sqrt
from typing import Any

import numpy as np

from ..core.rule import composite, differentiable, name_of, primitive
from ..core.symbolic import is_symbolic, seen_any
from .arithmetic import guard, over
from .axes import (
    NoValue,
    aligned_weights,
    as_array,
    as_type,
    conj,
    counted,
    kept_shape,
    masked,
    reduced_axes,
    refuse_out,
    valued,
)
from .reductions import valid

# A number that is taken from all elements changes no variance. If they are nearly
# equal, their deviations are lost in the rounding of their mean, which is as large.
# Less one of them they are small numbers, exactly, and 0 if all are equal.


@primitive
def shifted(a: Any, axis: Any, where: Any, ignores_nan: bool) -> Any:
    """`a`, less the largest element along each slice of nearly equal ones."""
    axes = reduced_axes(a.ndim, axis)
    n = prod([a.shape[i] for i in axes])
    if a.dtype.kind not in "fc" or n < 3 or not a.size:
        return a
    where = (
        None if where is True or where is NoValue else np.broadcast_to(where, a.shape)
    )
    with np.errstate(all="ignore"):
        # Of most slices two elements tell enough: 7 us, or 0 to 12 % of a gradient
        first, last = _ends(a, axes)
        reach = min(0.5, sqrt(n * np.finfo(a.dtype).eps))
        candidates = ~(abs(first - last) > reach * abs(first))  # also if one is NaN
        if where is not None:
            candidates |= ~np.logical_and(*_ends(where, axes))
        if not candidates.any():
            return a
        order = [*(i for i in range(a.ndim) if i not in axes), *axes]
        slices = a.transpose(order)[candidates]
        looked = where is None or where.transpose(order)[candidates]
        looked = valid(slices, looked) if ignores_nan else looked
        along: Any = {"axis": tuple(range(1, slices.ndim)), "keepdims": True}
        largest = np.max(slices, initial=-np.inf, where=looked, **along)
        # Numbers that differ by less than a factor of 2 are subtracted without rounding
        near = abs(slices - largest) <= abs(largest) / 2
        near = np.all(near, where=looked, **along) & np.isfinite(largest)
        if not near.any():
            return a
        y = a.copy()
        y.transpose(order)[candidates] = np.where(near, slices - largest, slices)
    return y


def _ends(a: Any, axes: tuple[int, ...]) -> list[Any]:
    """The first and the last element of each slice along these axes."""
    ends = []
    for k in (0, -1):
        key: list[Any] = [slice(None)] * a.ndim
        for i in axes:
            key[i] = k
        ends.append(a[tuple(key)])
    return ends


differentiable(shifted, lambda dy, *_: dy, lambda dx, *_: dx, saves="")


def without_offset(
    a: Any, axis: Any, where: Any = True, ignores_nan: bool = False
) -> Any:
    """The same, without a step on the tape where nothing is taken away."""
    if not is_symbolic(a):
        plain = getattr(a, "value", a)
        if shifted(plain, axis, where, ignores_nan) is plain:
            return a
    return shifted(a, axis, where, ignores_nan)


# Variances. With N the number of elements less ddof, and m the mean,
#   y = sum(|x - m|**2) / N,   dx = dy * 2 (x - m) / N;
# the part of dx that comes through m is a multiple of sum(x - m), which is 0.


@primitive
def variance(a: Any, fn: Any, options: Any) -> Any:
    """`np.var` or `np.nanvar`."""
    return fn(a, **options)


@primitive
def variance_about(a: Any, mean: Any, fn: Any, options: Any) -> Any:
    """The same about a given mean, on which it depends too."""
    return fn(a, mean=mean, **options)


def deviations(a: Any, mean: Any, fn: Any, options: Any) -> tuple[Any, Any]:
    """x - m (0 where nothing is looked at), and 2/N (0 unless N is positive)."""
    axis, where = options["axis"], options.get("where", True)
    if fn is np.nanvar:
        where = valid(a, where)
    n = counted(where, a.shape, axis)
    if mean is None:
        looked = masked(a, where)
        total = np.sum(looked, axis=axis, keepdims=True)
        mean = (
            total * (1 / max(n, 1)) if isinstance(n, int) else total / np.maximum(n, 1)
        )
    freedom = n - options["ddof"]
    if isinstance(n, int):
        return a - mean, 2 / freedom if freedom > 0 else 0.0
    scale = guard(2 / freedom, freedom > 0)
    return masked(a - mean, where), as_type(scale, a.dtype)


# y is real, also where dtype= makes its type complex: so is what of dy it sees.
def variance_vjp(dy: Any, y: Any, a: Any, fn: Any, options: Any) -> Any:
    d, scale = deviations(a, None, fn, options)
    return np.reshape(np.real(dy), kept_shape(a.shape, options["axis"])) * scale * d


def variance_jvp(dx: Any, y: Any, a: Any, fn: Any, options: Any) -> Any:
    d, scale = deviations(a, None, fn, options)
    total = np.sum(np.real(conj(d) * dx), axis=options["axis"], keepdims=True)
    return np.reshape(total * scale, y.shape)


def variance_about_vjp(
    dy: Any, y: Any, a: Any, mean: Any, fn: Any, options: Any
) -> Any:
    d, scale = deviations(a, mean, fn, options)
    dx = np.reshape(np.real(dy), kept_shape(a.shape, options["axis"])) * scale * d
    return dx, -dx


def variance_about_jvp(
    dxs: Any, y: Any, a: Any, mean: Any, fn: Any, options: Any
) -> Any:
    d, scale = deviations(a, mean, fn, options)
    total = conj(d) * (dxs[0] - dxs[1])
    return np.reshape(
        np.sum(np.real(total), axis=options["axis"], keepdims=True) * scale, y.shape
    )


differentiable(variance, variance_vjp, variance_jvp, saves="a")
differentiable(
    variance_about,
    variance_about_vjp,
    variance_about_jvp,
    saves="a mean",
    arrays=2,
)


def _spread(fn: Any, squared: Any) -> Any:
    """`np.var`, `np.std` or one that ignores NaN, by the variance."""
    root = (lambda v: v) if fn is squared else np.sqrt

    def spread(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0,
        keepdims: Any = NoValue, *, where: Any = NoValue, mean: Any = NoValue,
        correction: Any = NoValue,
    ) -> Any:  # fmt: skip
        refuse_out(fn, out)
        if correction is not NoValue and ddof != 0:
            raise ValueError(f"give {name_of(fn)} ddof or correction, not both")
        options = {
            "axis": axis,
            "dtype": dtype,
            "ddof": ddof if correction is NoValue else correction,
            "keepdims": keepdims,
            "where": where,
        }
        if mean is not NoValue:
            return root(variance_about(a, mean, squared, options))
        near = without_offset(a, axis, where, squared is np.nanvar)
        y = root(variance(near, squared, options))
        return y if near is a or is_symbolic(a) else valued(y, [a], fn, options)

    return spread


for _fn in (np.var, np.nanvar):
    _note = "0 where ddof leaves no degree of freedom"
    composite(_fn, _spread(_fn, _fn), note=_note)
for _fn, _squared in ((np.std, np.var), (np.nanstd, np.nanvar)):
    _note = "0 where all are equal, and where ddof leaves no degree of freedom"
    composite(_fn, _spread(_fn, _squared), note=_note)

# Averages


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *,
    keepdims: Any = NoValue,
) -> Any:  # fmt: skip
    a = as_array(a)
    if weights is None:
        mean = np.mean(a, axis=axis, keepdims=keepdims)
        total = np.full(mean.shape, counted(True, a.shape, axis), mean.dtype)
        return (mean, total) if returned else mean
    weights = as_array(weights)
    whole = np.result_type(a, weights, *([np.float64] if a.dtype.kind in "iub" else []))
    weights = as_type(aligned_weights(weights, a.shape, axis), whole)
    total = np.sum(weights, axis=axis, keepdims=keepdims)
    if seen_any(total == 0):
        raise ZeroDivisionError("the weights of np.average sum to 0")
    mean = np.sum(as_type(a, whole) * weights, axis=axis, keepdims=keepdims) / total
    return (mean, np.broadcast_to(total, mean.shape)) if returned else mean


composite(np.average, average)

# Covariances. X has a row for each variable, Z is X less its rows' (weighted) means:
#   C = Z W Z' / f,   dX = (dC + dC') Z W / f;
# again the part that comes through the mean is 0.


@primitive
def covariance(x: Any, ddof: int, fweights: Any, aweights: Any, dtype: Any) -> Any:
    c = np.cov(x, ddof=ddof, fweights=fweights, aweights=aweights, dtype=dtype)
    return c.reshape(len(x), len(x))


def _weighted(x: Any, ddof: int, fweights: Any, aweights: Any) -> Any:
    """Z W / f."""
    w = 1 if fweights is None else fweights
    w = np.broadcast_to(w if aweights is None else w * aweights, x.shape[1:])
    total = np.sum(w)
    a = 1 if aweights is None else aweights
    freedom = total - ddof * np.sum(w * a) / total
    z = x - np.expand_dims(np.sum(x * w, axis=1) / total, 1)
    return z * (w * guard(1 / freedom, freedom > 0))


def covariance_vjp(
    dy: Any, y: Any, x: Any, ddof: int, fweights: Any, aweights: Any, dtype: Any
) -> Any:
    zw = _weighted(x, ddof, fweights, aweights)
    return np.matmul(dy + conj(np.transpose(dy)), zw)


def covariance_jvp(
    dx: Any, y: Any, x: Any, ddof: int, fweights: Any, aweights: Any, dtype: Any
) -> Any:
    zw = _weighted(x, ddof, fweights, aweights)
    half = np.matmul(dx, conj(np.transpose(zw)))
    return half + conj(np.transpose(half))


differentiable(covariance, covariance_vjp, covariance_jvp, saves="x")


def rows_of_variables(m: Any, rowvar: bool, dtype: Any) -> Any:
    m = as_type(as_array(m), dtype)
    if m.ndim > 2:
        raise ValueError(f"np.cov needs arrays with at most 2 axes, not {m.ndim}")
    if m.ndim < 2:
        return np.reshape(m, (1, m.size))
    return m if rowvar else np.transpose(m)


def covariances(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None,
    fweights: Any = None, aweights: Any = None, *, dtype: Any = None,
) -> tuple[Any, Any]:  # fmt: skip
    """`np.cov`, and the same without the rounding of means, which changes alike."""
    m, y = as_array(m), y if y is None else as_array(y)
    if dtype is None:
        dtype = np.result_type(m, *([] if y is None else [y]), np.float64)
    x = rows_of_variables(m, rowvar, dtype)
    if y is not None:
        # NumPy takes a column for one variable's observations, and a row too
        x = np.concatenate([x, rows_of_variables(y, rowvar or len(y) == 1, dtype)])
    ddof = (0 if bias else 1) if ddof is None else ddof
    options = (ddof, fweights, aweights, dtype)
    near = without_offset(x, 1)
    c = exact = covariance(near, *options)
    if near is not x and not is_symbolic(x):
        c = valued(exact, [x], lambda x: covariance(x, *options), {})
    return (np.reshape(c, ()), np.reshape(exact, ())) if c.size == 1 else (c, exact)


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Any:
    c, exact = covariances(x, y, rowvar, dtype=dtype)
    with np.errstate(divide="ignore", invalid="ignore"):  # c warns, as NumPy does
        if not c.ndim:
            smooth = over(exact, exact)
        else:
            deviation = np.sqrt(np.real(np.diag(exact)))
            smooth = over(over(exact, np.expand_dims(deviation, 1)), deviation)
    return valued(smooth, [c], _normalized, {})


def _normalized(c: Any) -> Any:
    """NumPy's correlations: NaN for what does not vary, and cut at -1 and 1."""
    if not c.ndim:
        return c / c
    deviation = np.sqrt(np.real(np.diag(c)))
    y = c / deviation[:, None] / deviation
    if y.dtype.kind == "c":
        return np.clip(y.real, -1, 1) + 1j * np.clip(y.imag, -1, 1)
    return np.clip(y, -1, 1)


composite(np.cov, lambda *args, **kwargs: covariances(*args, **kwargs)[0])
composite(np.corrcoef, corrcoef, note="0 for a variable that does not vary")
