"""Taking parts of an array: basic, integer, boolean and mixed indices."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple
from numpy.lib.stride_tricks import sliding_window_view

from ..core.cotangent import Scattered
from ..core.rule import (
    composite,
    index,
    is_basic,
    linear,
    nondifferentiable,
    primitive,
)
from ..core.symbolic import PLAIN, as_plain
from ..core.tape import Traced

# NumPy adds at a flat position in 2 ns, at any other key in 7 to 15; finding the flat
# positions pays from so many elements on.
FEW = 2000


@primitive
def scatter(dy: Any, key: Any, shape: tuple[int, ...], distinct: bool = False) -> Any:
    """Return zeros of a shape with `dy` added at `key`: the transpose of `index`.

    `distinct` promises that the key names no element twice.
    """
    parts = _parts(key)
    if distinct or not any(map(_may_repeat, parts)):
        x = np.zeros(shape, dy.dtype)
        x[parts] = dy
        return x
    # Many terms summed in float16 would soon be too small to count.
    x = np.zeros(shape, np.float32 if dy.dtype == np.float16 else dy.dtype)
    if dy.size < FEW or any(map(_is_flag, parts)):
        np.add.at(x, parts, dy)
    else:
        np.add.at(x.reshape(-1), _positions(parts, shape).reshape(-1), dy.reshape(-1))
    return x.astype(dy.dtype, copy=False)


def _parts(key: Any) -> tuple[Any, ...]:
    return tuple(map(_plain, key if isinstance(key, tuple) else (key,)))


def _plain(part: Any) -> Any:
    """A part of a key as None, Ellipsis, a slice or an array."""
    if part is None or part is Ellipsis or isinstance(part, slice):
        return part
    while isinstance(part, Traced):  # places that were computed have no gradient
        part = part.value
    part = as_plain(part)
    return part if part.size or part.dtype.kind != "f" else part.astype(int)  # x[[]]


def _may_repeat(part: Any) -> bool:
    """Whether a part of a key may name an element twice; a mask never does."""
    return isinstance(part, PLAIN) and part.ndim > 0 and part.dtype.kind != "b"


def _is_flag(part: Any) -> bool:
    """Whether a part is True or False, which adds an axis."""
    return isinstance(part, np.ndarray) and not part.ndim and part.dtype.kind == "b"


# An axis' share of the position depends on its own part of the key. The key with all
# other parts reduced to length 1 gives this share in the place that NumPy's rules have
# for it, and the shares add up by broadcasting.
def _positions(parts: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """Where the elements that a key names are in the flat array."""
    if len(shape) == len(parts) == 1:
        return parts[0]
    full = _one_per_axis(parts, len(shape))
    short = [_shortened(part) for part in full]
    at, axis = 0, 0
    for i, part in enumerate(full):
        if part is not None:
            lengths = [1] * len(shape)
            lengths[axis] = shape[axis]
            share = np.arange(shape[axis]) * prod(shape[axis + 1 :])
            key = (*short[:i], part, *short[i + 1 :])
            at = at + share.reshape(lengths)[key]
            axis += 1
    return at


def _one_per_axis(parts: tuple[Any, ...], ndim: int) -> list[Any]:
    """The key with a part for each axis: masks as numbers, an ellipsis as slices."""
    full: list[Any] = []
    for part in parts:
        mask = isinstance(part, np.ndarray) and part.dtype.kind == "b"
        full.extend(np.nonzero(part) if mask else (part,))
    used = sum(part is not None and part is not Ellipsis for part in full)
    gap = next((i for i, part in enumerate(full) if part is Ellipsis), len(full))
    full[gap : gap + 1] = [slice(None)] * (ndim - used)
    return full


def _shortened(part: Any) -> Any:
    if isinstance(part, slice):
        return slice(None)
    return part if part is None else np.zeros((1,) * part.ndim, int)


def index_transpose(dy: Any, y: Any, x: Any, key: Any) -> Any:
    plain = isinstance(dy, (np.ndarray, np.generic))
    if plain and is_basic(key):
        return Scattered(key, dy, x.shape, distinct=True)
    parts = _parts(key)
    if plain and not any(map(_may_repeat, parts)):
        return Scattered(parts, dy, x.shape, distinct=True)
    return scatter(dy, key, x.shape)


linear(index, index_transpose)
linear(scatter, lambda dx, x, dy, key, *_, **__: index(dx, key))


def along(axis: int, part: Any) -> tuple[Any, ...]:
    """The key that indexes one axis."""
    return (slice(None),) * axis + (part,)


# Gathering along an axis, or from the flat array if the axis is None


def take_transpose(
    dy: Any,
    y: Any,
    a: Any,
    indices: Any,
    axis: Any = None,
    out: Any = None,
    mode: str = "raise",
) -> Any:
    flat = axis is None or not a.ndim
    shape = (a.size,) if flat else a.shape
    axis = 0 if flat else axis % a.ndim
    if mode == "wrap":
        indices = np.remainder(indices, shape[axis])
    elif mode == "clip":
        indices = np.clip(indices, 0, shape[axis] - 1)
    whole = np.add(indices, 0)  # also True and False, which would be a mask
    return np.reshape(scatter(dy, along(axis, whole), shape), a.shape)


def take_along_axis_transpose(
    dy: Any, y: Any, arr: Any, indices: Any, axis: Any = -1
) -> Any:
    if axis is None:
        return np.reshape(scatter(dy, indices, (arr.size,)), arr.shape)
    key = [
        np.arange(n).reshape((n,) + (1,) * (arr.ndim - i - 1))
        for i, n in enumerate(arr.shape)
    ]
    key[axis] = indices
    return scatter(dy, tuple(key), arr.shape)


linear(np.take, take_transpose)
linear(np.take_along_axis, take_along_axis_transpose)


def compress(condition: Any, a: Any, axis: Any = None, out: Any = None) -> Any:
    return np.take(a, np.flatnonzero(condition), axis)


composite(np.compress, compress)
composite(
    np.extract,
    lambda condition, arr: np.take(np.ravel(arr), np.flatnonzero(condition)),
)


# Windows overlap: the positions of their elements say where the cotangents add up.
def sliding_window_transpose(
    dy: Any, y: Any, x: Any, window_shape: Any, axis: Any = None, **options: Any
) -> Any:
    positions = np.arange(x.size).reshape(x.shape)
    positions = sliding_window_view(positions, window_shape, axis)
    return np.reshape(scatter(dy, positions, (x.size,)), x.shape)


linear(sliding_window_view, sliding_window_transpose)


@primitive
def nonzero_bounds(filt: Any, trim: str, axis: Any) -> tuple[slice, ...]:
    """The slices that `np.trim_zeros` takes."""
    axes = range(np.ndim(filt)) if axis is None else axis
    axes = normalize_axis_tuple(axes, np.ndim(filt))
    places = np.nonzero(filt)

    def bounds(found: Any) -> slice:
        if not found.size:
            return slice(0, 0)
        start = found.min() if "f" in trim.lower() else None
        return slice(start, found.max() + 1 if "b" in trim.lower() else None)

    return tuple(
        bounds(found) if i in axes else slice(None) for i, found in enumerate(places)
    )


def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    if trim.lower() not in ("fb", "bf", "f", "b"):
        raise ValueError(f"unexpected character(s) in `trim`: {trim!r}")
    return index(filt, nonzero_bounds(filt, trim, axis))


nondifferentiable("it returns positions", nonzero_bounds)
composite(np.trim_zeros, trim_zeros)
