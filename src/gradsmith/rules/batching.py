"""Many tangents at once, along a leading axis.

Each function here is given the tangents of a function's arrays, with that axis or None,
then its result and its arguments. It returns the tangents of the result, None if they
are zero; casting and broadcasting them may be left to the engine. NotImplemented means
one tangent after the other, which is also how all functions without a row are done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.rule import BATCHED, aligned, convert, index, is_basic
from .axes import kept_shape, reduced_axes
from .indexing import scatter
from .ordering import from_tied, to_tied
from .products import column, row, rows, summed_axes


def batched(*fns: Any) -> Callable[[Any], Any]:
    """Declare how many tangents at once go through functions."""

    def declare(push: Any) -> Any:
        BATCHED.update(dict.fromkeys(fns, push))
        return push

    return declare


def from_back(axis: Any, ndim: int) -> Any:
    """Axes counted from the back, where those in front don't matter."""
    if isinstance(axis, (tuple, list)) or axis is None or not ndim:
        return tuple(i - ndim for i in reduced_axes(ndim, axis))
    return axis % ndim - ndim


# Shapes and axes

for _same in (np.real, np.imag, np.conjugate):
    BATCHED[_same] = lambda dxs, y, x, fn=_same: fn(dxs[0])


@batched(convert, np.copy)
def unchanged(dxs: Any, y: Any, *_: Any, **__: Any) -> Any:
    return dxs[0]


@batched(np.squeeze, np.expand_dims)
def in_order(dxs: Any, y: Any, *_: Any, **__: Any) -> Any:
    return np.reshape(dxs[0], (len(dxs[0]), *y.shape))


@batched(np.reshape)
def reshape(
    dxs: Any, y: Any, a: Any, shape: Any, order: str = "C", copy: Any = None
) -> Any:
    return in_order(dxs, y) if order in ("C", "c") else NotImplemented


@batched(np.transpose)
def transpose(dxs: Any, y: Any, a: Any, axes: Any = None) -> Any:
    axes = reversed(range(a.ndim)) if axes is None else axes
    return np.transpose(dxs[0], (0, *(i % a.ndim + 1 for i in axes)))


@batched(np.matrix_transpose)
def matrix_transpose(dxs: Any, y: Any, x: Any) -> Any:
    return np.matrix_transpose(dxs[0])


@batched(np.swapaxes)
def swapaxes(dxs: Any, y: Any, a: Any, axis1: int, axis2: int) -> Any:
    return np.swapaxes(dxs[0], from_back(axis1, a.ndim), from_back(axis2, a.ndim))


@batched(np.moveaxis)
def moveaxis(dxs: Any, y: Any, a: Any, source: Any, destination: Any) -> Any:
    ends = from_back(source, a.ndim), from_back(destination, a.ndim)
    return np.moveaxis(dxs[0], *ends)


@batched(np.flip)
def flip(dxs: Any, y: Any, m: Any, axis: Any = None) -> Any:
    return np.flip(dxs[0], from_back(axis, m.ndim))


@batched(np.broadcast_to)
def broadcast_to(dxs: Any, y: Any, *_: Any, **__: Any) -> Any:
    return aligned(dxs[0], y.ndim)


@batched(index)
def taken(dxs: Any, y: Any, x: Any, key: Any) -> Any:
    key = _behind(key)
    return key if key is NotImplemented else index(dxs[0], key)


@batched(scatter)
def scattered(
    dxs: Any, y: Any, dy: Any, key: Any, shape: Any, distinct: bool = False
) -> Any:
    key = _behind(key)
    if key is NotImplemented:
        return key
    return scatter(dxs[0], key, (len(dxs[0]), *shape), distinct)


def _behind(key: Any) -> Any:
    """A key for the axes behind the first one.

    Of several arrays that don't stand side by side NumPy puts the axes first, before
    that of the tangents; numbers count as arrays beside one.
    """
    parts = key if isinstance(key, tuple) else (key,)
    arrays = [part for part in parts if not is_basic(part)]
    if arrays and (len(arrays) > 1 or int in map(type, parts)):
        return NotImplemented
    return (slice(None), *parts)


@batched(np.take)
def take(dxs: Any, y: Any, a: Any, indices: Any, axis: Any = None, **kw: Any) -> Any:
    if axis is None or not a.ndim:
        return NotImplemented
    return np.take(dxs[0], indices, from_back(axis, a.ndim), **kw)


# Joining and choosing


def completed(dxs: Any, xs: Any) -> list[Any]:
    """The tangents of all arrays, zeros where there is none."""
    many = next(len(dx) for dx in dxs if dx is not None)
    return [
        np.zeros((many, *np.shape(x)), getattr(x, "dtype", float)) if dx is None else dx
        for dx, x in zip(dxs, xs, strict=True)
    ]


@batched(np.concatenate)
def concatenate(dxs: Any, y: Any, arrays: Any, axis: Any = 0, **_: Any) -> Any:
    if axis is None or not isinstance(arrays, (list, tuple)):
        return NotImplemented
    return np.concatenate(completed(dxs, arrays), from_back(axis, y.ndim))


@batched(np.stack)
def stack(dxs: Any, y: Any, arrays: Any, axis: int = 0, *_: Any, **__: Any) -> Any:
    if not isinstance(arrays, (list, tuple)):
        return NotImplemented
    return np.stack(completed(dxs, arrays), from_back(axis, y.ndim))


@batched(np.unstack)
def unstack(dxs: Any, y: Any, x: Any, *, axis: int = 0) -> Any:
    return np.unstack(dxs[0], axis=from_back(axis, x.ndim))


@batched(np.where)
def where(dxs: Any, y: Any, c: Any, x1: Any, x2: Any) -> Any:
    chosen = (0 if dx is None else aligned(dx, y.ndim) for dx in dxs[1:])
    return np.where(c, *chosen)


# Reductions


def _sum_like(fn: Any) -> Any:
    def push(
        dxs: Any, y: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None,
        keepdims: Any = False, initial: Any = None, where: Any = True,
    ) -> Any:  # fmt: skip
        axes = from_back(axis, a.ndim)
        return in_order([fn(dxs[0], axis=axes, dtype=dtype, where=where)], y)

    return push


BATCHED[np.sum] = _sum_like(np.sum)
BATCHED[np.mean] = _sum_like(np.mean)


@batched(np.max, np.amax, np.min, np.amin)
def extremum(
    dxs: Any, y: Any, a: Any, axis: Any = None, out: Any = None, keepdims: Any = False,
    initial: Any = None, where: Any = True,
) -> Any:  # fmt: skip
    chosen = np.reshape(y, kept_shape(a.shape, axis))
    return in_order([from_tied(dxs[0], a, chosen, where, initial)], y)


for _tied in (from_tied, to_tied):
    BATCHED[_tied] = lambda dxs, y, d, *chosen, fn=_tied: (
        None if dxs[0] is None else fn(dxs[0], *chosen)
    )


@batched(np.cumsum)
def cumsum(
    dxs: Any, y: Any, a: Any, axis: Any = None, dtype: Any = None, out: Any = None
) -> Any:
    if axis is None or not a.ndim:
        return NotImplemented
    return np.cumsum(dxs[0], from_back(axis, a.ndim), dtype)


# Products


@batched(np.matmul)
def matmul(dxs: Any, y: Any, x1: Any, x2: Any) -> Any:
    dx1, dx2 = dxs
    terms = []
    if dx1 is not None:
        terms.append(_with_left(dx1, y, x1, x2))
    if dx2 is not None:
        terms.append(_with_right(dx2, y, x1, x2))
    return terms[0] if len(terms) == 1 else terms[0] + terms[1]


def _with_left(dx1: Any, y: Any, x1: Any, x2: Any) -> Any:
    """dX1 X2 for each dX1."""
    if x2.ndim == 1 or x1.ndim < x2.ndim == 2:
        return np.matmul(dx1, x2)
    if x1.ndim == 1:
        return np.matmul(aligned(row(dx1), x2.ndim), x2)[..., 0, :]
    if x2.ndim == 2:  # one product instead of a stack of them
        return np.reshape(np.matmul(rows(dx1), x2), (*dx1.shape[:-1], x2.shape[-1]))
    return np.matmul(aligned(dx1, y.ndim), x2)


def _with_right(dx2: Any, y: Any, x1: Any, x2: Any) -> Any:
    """X1 dX2 for each dX2."""
    if x2.ndim == 1 and x1.ndim <= 2:
        return np.matmul(dx2, np.transpose(x1))
    if x2.ndim == 1:
        return np.matmul(x1, aligned(column(dx2), x1.ndim))[..., 0]
    if x1.ndim == 1:
        return np.matmul(x1, dx2)
    return np.matmul(x1, aligned(dx2, y.ndim))


@batched(np.dot)
def dot(dxs: Any, y: Any, a: Any, b: Any, out: Any = None) -> Any:
    if not (np.ndim(a) and 0 < np.ndim(b) <= 2):
        return NotImplemented
    return matmul(dxs, y, a, b)


@batched(np.tensordot)
def tensordot(dxs: Any, y: Any, a: Any, b: Any, axes: Any = 2) -> Any:
    axes1, axes2 = summed_axes(a, b, axes)
    da, db = dxs
    terms = []
    if da is not None:
        terms.append(np.tensordot(da, b, ([i + 1 for i in axes1], axes2)))
    if db is not None:
        db = np.tensordot(a, db, (axes1, [i + 1 for i in axes2]))
        terms.append(np.moveaxis(db, a.ndim - len(axes1), 0))
    return terms[0] if len(terms) == 1 else terms[0] + terms[1]
