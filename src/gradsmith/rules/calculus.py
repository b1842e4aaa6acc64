"""Differences, integrals and convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from ..core.rule import bilinear, composite, linear, primitive
from .axes import NoValue, as_array, as_type, conj, valued


def part(x: Any, axis: int, *bounds: int | None) -> Any:
    """`x[start:stop]` along an axis that is counted from the front."""
    return x[(slice(None),) * axis + (slice(*bounds),)]


def padded(x: Any, axis: int, before: int, after: int) -> Any:
    """x with so many zeros before and after it along an axis."""
    shape = list(x.shape)
    pieces = [x]
    for at, count in ((0, before), (len(pieces) + bool(before), after)):
        if count:
            shape[axis] = count
            pieces.insert(at, np.zeros(shape, x.dtype))
    return np.concatenate(pieces, axis=axis) if len(pieces) > 1 else x


# Differences. The transpose of x[1:] - x[:-1] is the same of -dy, with zeros around it.


@primitive
def differences(x: Any, n: int, axis: int) -> Any:
    return np.diff(x, n, axis)


def differences_transpose(dy: Any, y: Any, x: Any, n: int, axis: int) -> Any:
    if not y.shape[axis]:
        return np.zeros(x.shape, dy.dtype)
    dx = differences(padded(dy, axis, n, n), n, axis)
    return -dx if n % 2 else dx


linear(differences, differences_transpose)


def diff(
    a: Any, n: int = 1, axis: int = -1, prepend: Any = NoValue, append: Any = NoValue
) -> Any:
    if n == 0:
        return a
    a = as_array(a)
    axis = normalize_axis_index(axis, a.ndim)
    pieces = [
        piece if piece is a else _edge(as_array(piece), a.shape, axis)
        for piece in (prepend, a, append)
        if piece is not NoValue
    ]
    whole = np.concatenate(pieces, axis=axis) if len(pieces) > 1 else a
    return differences(whole, n, axis)


def _edge(value: Any, shape: tuple[int, ...], axis: int) -> Any:
    """What is put before or after an array; a number stands for a slice of it."""
    if value.ndim:
        return value
    return np.broadcast_to(value, (*shape[:axis], 1, *shape[axis + 1 :]))


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    ary = np.ravel(as_array(ary))
    ends = [
        None if end is None else as_type(np.ravel(as_array(end)), ary.dtype)
        for end in (to_begin, to_end)
    ]
    pieces = [ends[0], differences(ary, 1, 0), ends[1]]
    given = [piece for piece in pieces if piece is not None]
    return np.concatenate(given) if len(given) > 1 else given[0]


composite(np.diff, diff)
composite(np.ediff1d, ediff1d)

# Derivatives on a grid, by NumPy's formulas.


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    f = as_array(f)
    f = f if f.dtype.kind in "fc" else as_type(f, np.float64)
    axes = range(f.ndim) if axis is None else normalize_axis_tuple(axis, f.ndim)
    spacings = [h if isinstance(h, (int, float)) else as_array(h) for h in varargs]
    spacings = spacings or [1.0]
    if len(spacings) == 1 and not np.ndim(spacings[0]):
        spacings = spacings * len(axes)
    if len(spacings) != len(axes):
        raise TypeError(
            f"np.gradient along {len(axes)} axes needs one spacing or {len(axes)}, and "
            f"was given {len(varargs)}"
        )
    slopes = [_along(f, h, i, edge_order) for h, i in zip(spacings, axes, strict=True)]
    return slopes[0] if len(slopes) == 1 else tuple(slopes)


def _along(f: Any, h: Any, axis: int, edge_order: int) -> Any:
    """The derivative along one axis; h is the spacing, or the coordinates."""
    n = f.shape[axis]
    if edge_order not in (1, 2) or n <= edge_order:
        raise ValueError(
            f"np.gradient needs edge_order 1 or 2 and more elements than that along an "
            f"axis; edge_order is {edge_order}, and axis {axis} has {n}"
        )
    if not np.ndim(h):
        return as_type(_on_even_grid(f, h, axis, edge_order), f.dtype)
    if h.shape != (n,):
        raise ValueError(
            f"np.gradient needs a spacing, or {n} coordinates, for axis {axis}, and "
            f"was given an array of shape {h.shape}"
        )
    h = h if h.dtype.kind in "fc" else as_type(h, np.float64)
    smooth = as_type(_on_uneven_grid(f, h, axis, edge_order), f.dtype)
    # NumPy takes the other formula where the distances are all the same.
    options = {"axis": axis, "edge_order": edge_order}
    return valued(smooth, [f, h], np.gradient, options)


def _on_even_grid(f: Any, h: Any, axis: int, edge_order: int) -> Any:
    inside = (part(f, axis, 2, None) - part(f, axis, None, -2)) / (2.0 * h)
    if edge_order == 1:
        first = (part(f, axis, 1, 2) - part(f, axis, 0, 1)) / h
        last = (part(f, axis, -1, None) - part(f, axis, -2, -1)) / h
    else:
        f0, f1, f2 = (part(f, axis, k, k + 1) for k in range(3))
        first = -1.5 / h * f0 + 2.0 / h * f1 + -0.5 / h * f2
        f2, f1, f0 = (part(f, axis, k, k + 1 or None) for k in (-3, -2, -1))
        last = 0.5 / h * f2 + -2.0 / h * f1 + 1.5 / h * f0
    return np.concatenate([first, inside, last], axis=axis)


# With the slopes s between neighbours at distances d,
#   y[k] = (d[k] s[k-1] + d[k-1] s[k]) / (d[k-1] + d[k])
# inside; at an edge s[0], or to second order s[0] + d[0] (s[0] - s[1]) / (d[0] + d[1]).
def _on_uneven_grid(f: Any, x: Any, axis: int, edge_order: int) -> Any:
    d = np.reshape(differences(x, 1, 0), (-1,) + (1,) * (f.ndim - 1 - axis))
    s = differences(f, 1, axis) / d
    wide = (1,) * axis + d.shape
    d = np.reshape(d, wide)
    d0, d1 = part(d, axis, None, -1), part(d, axis, 1, None)
    s0, s1 = part(s, axis, None, -1), part(s, axis, 1, None)
    inside = (d1 * s0 + d0 * s1) / (d0 + d1)
    first, last = part(s, axis, 0, 1), part(s, axis, -1, None)
    if edge_order == 2:
        outward = (s0 - s1) / (d0 + d1)
        first = first + part(d0 * outward, axis, 0, 1)
        last = last - part(d1 * outward, axis, -1, None)
    return np.concatenate([first, inside, last], axis=axis)


composite(np.gradient, gradient)


@primitive
def neighbour_sums(x: Any, axis: int) -> Any:
    return part(x, axis, 1, None) + part(x, axis, None, -1)


def neighbour_sums_transpose(dy: Any, y: Any, x: Any, axis: int) -> Any:
    if not x.shape[axis]:
        return np.zeros(x.shape, dy.dtype)
    return neighbour_sums(padded(dy, axis, 1, 1), axis)


linear(neighbour_sums, neighbour_sums_transpose)


def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    y = as_array(y)
    axis = normalize_axis_index(axis, y.ndim)
    if x is not None:
        x = as_array(x)
        dx = np.diff(x, axis=axis if x.ndim != 1 else 0)
        if x.ndim == 1:
            dx = np.reshape(dx, (-1,) + (1,) * (y.ndim - 1 - axis))
    return np.sum(dx * neighbour_sums(y, axis) / 2.0, axis=axis)


composite(np.trapezoid, trapezoid)

# Convolutions. The full one is y[k] = sum over i of a[i] v[k-i], with the transposes
#   da[i] = sum over k of dy[k] v[k-i]',   dv likewise:
# correlations of dy, set into zeros where the mode had cut the full result.


def uncut(dy: Any, m: int, n: int, *, swapped: bool = False) -> Any:
    """The cotangent of the full result of lengths m and n, of which dy is a part."""
    full, short, length = m + n - 1, min(m, n), dy.shape[0]
    if length == full:
        return dy
    before = short - 1 if length == full - 2 * (short - 1) else (short - 1) // 2
    if swapped and length == max(m, n):
        before = full - length - before
    return padded(dy, 0, before, full - length - before)


def convolve_da(dy: Any, y: Any, a: Any, v: Any, mode: Any = "full") -> Any:
    return np.correlate(uncut(dy, a.size, v.size), np.atleast_1d(v), "valid")


def convolve_dv(dy: Any, y: Any, a: Any, v: Any, mode: Any = "full") -> Any:
    return np.correlate(uncut(dy, a.size, v.size), np.atleast_1d(a), "valid")


bilinear(np.convolve, convolve_da, convolve_dv)


# y[k] = sum over i of a[i+k] v[i]'
def correlate_da(dy: Any, y: Any, a: Any, v: Any, mode: Any = "valid") -> Any:
    full = uncut(dy, a.size, v.size, swapped=v.size > a.size)
    return np.convolve(full, v, "valid")


def correlate_dv(dy: Any, y: Any, a: Any, v: Any, mode: Any = "valid") -> Any:
    full = uncut(dy, a.size, v.size, swapped=v.size > a.size)
    return np.flip(np.correlate(conj(full), conj(a), "valid"))


bilinear(np.correlate, correlate_da, correlate_dv)
