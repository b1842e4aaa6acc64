"""What several families of rules share: axes, masks, dtypes and options."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ..core.errors import UnsupportedOperationError
from ..core.infinite import Infinite
from ..core.rule import differentiable, name_of, primitive
from .wide import BLOCK, widen

FEW = 2000  # elements

NoValue = np._NoValue  # NumPy's mark of an option that was not given


def reduced_axes(ndim: int, axis: Any) -> tuple[int, ...]:
    """The axes that `axis` means, counted from the front."""
    if axis is None or not ndim:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple(i % ndim for i in axes)


def kept_shape(shape: tuple[int, ...], axis: Any) -> tuple[int, ...]:
    """A shape with 1 for the reduced axes, as keepdims gives it."""
    known = axis is None or axis.__class__ is int
    return _known_shape(shape, axis) if known else _kept_shape(shape, axis)


def _kept_shape(shape: tuple[int, ...], axis: Any) -> tuple[int, ...]:
    axes = reduced_axes(len(shape), axis)
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


_known_shape = lru_cache(maxsize=1024)(_kept_shape)  # 0.1 us instead of 1.2


def reshaped(x: Any, shape: tuple[int, ...]) -> Any:
    """np.reshape, of an array without a frame of NumPy's: 0.1 us instead of 0.6."""
    return x.reshape(shape) if x.__class__ is np.ndarray else np.reshape(x, shape)


def spread(dy: Any, shape: tuple[int, ...], axis: Any) -> Any:
    """Repeat what a reduction over `axis` gave in the shape it came from.

    It is a view, but of a few elements, which are copied in a tenth of the time. The
    view of a number takes 1.8 us by `np.broadcast_to`, so made 0.2.
    """
    plain = isinstance(dy, (np.ndarray, np.generic)) and dy.__class__ is not Infinite
    if plain and prod(shape) <= FEW:
        x = np.empty(shape, dy.dtype)
        x[...] = dy.reshape(kept_shape(shape, axis)) if dy.ndim else dy
        return x
    if dy.ndim:
        return np.broadcast_to(np.reshape(dy, kept_shape(shape, axis)), shape)
    if plain and dy.dtype.kind == "f":
        number: Any = dy
        return np.ndarray(shape, dy.dtype, number[()], 0, (0,) * len(shape))
    return np.broadcast_to(dy, shape)


def lined_up(x: Any, axis: Any) -> Any:
    """x with the reduced axes merged into one, which is the last."""
    axes = reduced_axes(x.ndim, axis)
    rest = [i for i in range(x.ndim) if i not in axes]
    shape = [x.shape[i] for i in rest]
    return np.reshape(
        np.transpose(x, (*rest, *axes)), (*shape, prod(x.shape[i] for i in axes))
    )


def put_back(lines: Any, shape: tuple[int, ...], axis: Any) -> Any:
    """The inverse of `lined_up`, for an x of this shape."""
    axes = reduced_axes(len(shape), axis)
    order = [*(i for i in range(len(shape)) if i not in axes), *axes]
    moved = np.reshape(lines, tuple(shape[i] for i in order))
    return np.transpose(moved, tuple(order.index(i) for i in range(len(shape))))


def by_lines(fn: Any, axis: Any, *xs: Any) -> Any:
    """fn along the merged last axis, computed in float64, in the dtype and shape of x.

    x is the last of xs; the others have its shape, or 1 along the axis.
    """
    shape, dtype = xs[-1].shape, xs[-1].dtype
    lines = [lined_up(x, axis) for x in xs]
    if not all(type(x) is np.ndarray for x in lines) or not prod(shape):
        return put_back(fn(*map(widen, lines)).astype(dtype), shape, axis)
    flat = [np.reshape(x, (-1, x.shape[-1])) for x in lines]
    y = np.empty(flat[-1].shape, dtype)
    step = max(BLOCK // y.shape[1], 1)
    for i in range(0, len(y), step):
        y[i : i + step] = fn(*[widen(x[i : i + step]) for x in flat])
    return put_back(y, shape, axis)


def swapped(x: Any, axis: Any) -> Any:
    """x with `axis` and the last one exchanged; all in one line if `axis` is None."""
    if axis is None or not x.ndim:
        return np.reshape(x, (x.size,))
    return np.swapaxes(x, axis, -1)


def swapped_back(lines: Any, shape: tuple[int, ...], axis: Any) -> Any:
    if axis is None or not shape:
        return np.reshape(lines, shape)
    return np.swapaxes(lines, axis, -1)


def is_given(option: Any) -> bool:
    return option is not None and option is not NoValue


def masked(dx: Any, where: Any) -> Any:
    """dx where a reduction looked, else 0."""
    return dx if where is True or where is NoValue else np.where(where, dx, 0)


def counted(where: Any, shape: tuple[int, ...], axis: Any) -> Any:
    """How many elements a reduction looked at: a number, or an array with kept axes."""
    axes = reduced_axes(len(shape), axis)
    if where is True or where is NoValue:
        return prod(shape[i] for i in axes)
    return np.sum(np.broadcast_to(where, shape), axis=axes, keepdims=True)


def conj(x: Any) -> Any:
    """The conjugate; a real x as it is, which `np.conj` would copy."""
    return np.conj(x) if x.dtype.kind == "c" else x


def as_array(x: Any) -> Any:
    """Something with a shape; of a list, also of tensors, one array."""
    if hasattr(x, "dtype"):
        return x
    return np.stack(x) if isinstance(x, (list, tuple)) and len(x) else np.asarray(x)


def as_type(x: Any, dtype: Any) -> Any:
    return x if x.dtype == dtype else np.astype(x, dtype)


def aligned_weights(weights: Any, shape: tuple[int, ...], axis: Any) -> Any:
    """Weights of an array along some of its axes, so that they broadcast against it."""
    if np.shape(weights) == shape:
        return weights
    if axis is None:
        raise TypeError("weights of another shape than the array need axis=")
    axes = reduced_axes(len(shape), axis)
    if np.shape(weights) != tuple(shape[i] for i in axes):
        raise ValueError(
            f"weights of shape {np.shape(weights)} don't fit the axes {axes} of an "
            f"array of shape {shape}"
        )
    order = sorted(range(len(axes)), key=axes.__getitem__)
    kept = tuple(n if i in axes else 1 for i, n in enumerate(shape))
    return np.reshape(np.transpose(weights, order), kept)


def refuse_out(fn: Any, out: Any) -> None:
    if out is not None:
        raise UnsupportedOperationError(
            f"{name_of(fn)} can't write into an existing array (out=...): the tape "
            "would lose the result. Use the value it returns."
        )


@primitive
def valued(smooth: Any, inputs: list[Any], fn: Any, options: Any) -> Any:
    """`fn(*inputs)`, which is `smooth` but for rounding, and changes as that does."""
    return fn(*inputs, **options)


differentiable(
    valued,
    lambda dy, y, smooth, inputs, fn, options: (dy, *[None] * len(inputs)),
    lambda dxs, y, smooth, inputs, fn, options: dxs[0],
    arrays=2,
    list_at=1,
)
