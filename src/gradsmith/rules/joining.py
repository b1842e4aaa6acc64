"""Joining, splitting and repeating arrays."""

from __future__ import annotations

from itertools import accumulate
from math import prod
from typing import Any

import numpy as np

from ..core.cotangent import Spec
from ..core.rule import composite, convert, index, linear, nondifferentiable, primitive
from .axes import as_array
from .indexing import along, scatter

# Joining: each argument gets its piece of dy. The arguments are a list, or one array
# whose first axis is the list.


def members(arrays: Any) -> list[Spec]:
    if isinstance(arrays, Spec):
        return [Spec(arrays.shape[1:], arrays.dtype)] * arrays.shape[0]
    return arrays


def pieces(dy: Any, arrays: Any, axis: int, lengths: list[int]) -> Any:
    """Cut dy into pieces of the given lengths and the arguments' shapes."""
    if dy.__class__ is np.ndarray:  # np.split takes 5 us more
        lead, start, cuts = (slice(None),) * (axis % dy.ndim), 0, []
        for n in lengths:
            cuts.append(dy[(*lead, slice(start, start + n))])
            start += n
    else:
        cuts = np.split(dy, [*accumulate(lengths)][:-1], axis)
    shaped = [
        c if c.shape == x.shape else np.reshape(c, x.shape)
        for c, x in zip(cuts, members(arrays), strict=True)
    ]
    return np.stack(shaped) if isinstance(arrays, Spec) else shaped


def concatenate_transpose(
    dy: Any, y: Any, arrays: Any, axis: Any = 0, *_: Any, **__: Any
) -> Any:
    if axis is None:
        return pieces(dy, arrays, 0, [x.size for x in members(arrays)])
    return pieces(dy, arrays, axis, [x.shape[axis] for x in members(arrays)])


def stack_transpose(
    dy: Any, y: Any, arrays: Any, axis: int = 0, *_: Any, **__: Any
) -> Any:
    if isinstance(arrays, Spec):
        return np.moveaxis(dy, axis, 0)
    return np.unstack(dy, axis=axis)


def joined_along(axis: int, least: int) -> Any:
    """The transpose of a join along an axis of arrays with at least so many axes."""

    def transpose(dy: Any, y: Any, tup: Any, **_: Any) -> Any:
        lengths = [x.shape[axis] if x.ndim >= least else 1 for x in members(tup)]
        return pieces(dy, tup, axis, lengths)

    return transpose


def hstack_transpose(dy: Any, y: Any, tup: Any, **_: Any) -> Any:
    flat = dy.ndim == 1
    return joined_along(0 if flat else 1, 1 if flat else 2)(dy, y, tup)


linear(np.concatenate, concatenate_transpose, list_at=0)
linear(np.stack, stack_transpose, list_at=0)
linear(np.vstack, joined_along(0, 2), list_at=0)
linear(np.hstack, hstack_transpose, list_at=0)
linear(np.dstack, joined_along(2, 3), list_at=0)
linear(np.column_stack, joined_along(1, 2), list_at=0)


def block(arrays: Any) -> Any:
    """Join nested lists: the innermost along the last axis, and so on outwards."""
    depth = _depth(arrays)
    ndim = max(depth, *map(np.ndim, _blocks(arrays)))

    def join(part: Any, axis: int) -> Any:
        if isinstance(part, list):
            return np.concatenate([join(p, axis + 1) for p in part], axis)
        shape = np.shape(part)
        return np.reshape(part, (1,) * (ndim - len(shape)) + shape)

    return np.copy(arrays) if not depth else join(arrays, -depth)


def _depth(arrays: Any) -> int:
    return 1 + max(map(_depth, arrays)) if isinstance(arrays, list) else 0


def _blocks(arrays: Any) -> list[Any]:
    if not isinstance(arrays, list):
        return [arrays]
    return [x for part in arrays for x in _blocks(part)]


def append(arr: Any, values: Any, axis: Any = None) -> Any:
    if axis is None:
        return np.concatenate((np.ravel(arr), np.ravel(values)))
    return np.concatenate((arr, values), axis)


composite(np.block, block, lists=True)
composite(np.append, append)

# Inserting and deleting: NumPy does it with the numbers of the elements.


@primitive
def inserted(shape: Any, obj: Any, values_shape: Any, axis: Any) -> Any:
    """Where each element of the result is in arr and values, joined flat."""
    old = np.arange(prod(shape)).reshape(shape)
    new = np.arange(prod(values_shape)).reshape(values_shape)
    return np.insert(old, obj, new + old.size, axis)


def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    arr = as_array(arr)
    where = inserted(arr.shape, obj, np.shape(values), axis)
    values = convert(values, arr.dtype)
    return index(np.concatenate((np.ravel(arr), np.ravel(values))), where)


@primitive
def remaining(length: int, obj: Any) -> Any:
    return np.delete(np.arange(length), obj)


def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    length = np.size(arr, axis)
    return np.take(arr, remaining(length, obj), axis)


nondifferentiable("it returns positions", inserted, remaining)
composite(np.insert, insert)
composite(np.delete, delete)

# Splitting: dy's pieces are joined again. Cuts that go back take some elements twice;
# then the pieces are longer together than the whole.


def split_transpose(
    dys: Any, ys: Any, ary: Any, indices_or_sections: Any, axis: int = 0
) -> Any:
    joined = np.concatenate(dys, axis)
    length = ary.shape[axis]
    if joined.shape[axis] == length:
        return joined
    taken = np.array_split(np.arange(length), indices_or_sections)
    key = along(axis % ary.ndim, np.concatenate(taken))
    return scatter(joined, key, ary.shape)


def hsplit_transpose(dys: Any, ys: Any, ary: Any, indices_or_sections: Any) -> Any:
    return split_transpose(dys, ys, ary, indices_or_sections, min(1, ary.ndim - 1))


linear(np.split, split_transpose)
linear(np.array_split, split_transpose)
linear(np.vsplit, split_transpose)
linear(np.hsplit, hsplit_transpose)
linear(
    np.dsplit,
    lambda dys, ys, ary, indices_or_sections: split_transpose(
        dys, ys, ary, indices_or_sections, 2
    ),
)
linear(np.unstack, lambda dys, ys, x, axis=0: np.stack(dys, axis))

# Repeating: the cotangents of the copies add up.


def tile_transpose(dy: Any, y: Any, A: Any, reps: Any) -> Any:
    reps = (reps,) if np.ndim(reps) == 0 else tuple(reps)
    ndim = max(A.ndim, len(reps))
    shape = (1,) * (ndim - A.ndim) + A.shape
    reps = (1,) * (ndim - len(reps)) + reps
    apart = [n for pair in zip(reps, shape, strict=True) for n in pair]
    dx = np.sum(np.reshape(dy, apart), tuple(range(0, 2 * ndim, 2)))
    return np.reshape(dx, A.shape)


def repeat_transpose(dy: Any, y: Any, a: Any, repeats: Any, axis: Any = None) -> Any:
    flat = axis is None or not a.ndim
    shape = (a.size,) if flat else a.shape
    axis = 0 if flat else axis % a.ndim
    if np.size(repeats) == 1:
        apart = (*shape[: axis + 1], dy.shape[axis] // max(shape[axis], 1))
        dx = np.sum(np.reshape(dy, apart + shape[axis + 1 :]), axis + 1)
    else:
        copied = np.repeat(np.arange(shape[axis]), repeats)
        dx = scatter(dy, along(axis, copied), shape)
    return np.reshape(dx, a.shape)


def resize(a: Any, new_shape: Any) -> Any:
    new_shape = (new_shape,) if np.ndim(new_shape) == 0 else tuple(new_shape)
    size = prod(new_shape)
    if any(n < 0 for n in new_shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    if not size or not np.size(a):
        return np.zeros_like(a, shape=new_shape)
    copies = np.tile(np.ravel(a), -(-size // np.size(a)))
    return np.reshape(copies[:size], new_shape)


linear(np.tile, tile_transpose)
linear(np.repeat, repeat_transpose)
composite(np.resize, resize)
