"""Shapes: other views of the same elements, and reps of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..operations.portable import shape_of
from ._axes import axes_of, one_axis
from ._dispatch import portable
from ._operands import first_array, operand


@portable(np.shape)
def shape(K: Any, x: Any, /) -> tuple[Any, ...]:
    """The lengths of the axes.

    Whole numbers, but for an axis whose length a TensorFlow graph leaves open: there a
    scalar tensor stands, which the functions here take as a length.

    >>> shape(np.ones((2, 3)))
    (2, 3)
    """
    return K.shape(x)


@portable(np.ndim)
def ndim(K: Any, x: Any, /) -> int:
    """How many axes there are.

    >>> ndim(np.ones((2, 3)))
    2
    """
    return K.ndim(x)


@portable(np.size)
def size(K: Any, x: Any, /, axis: int | None = None) -> Any:
    """How many elements there are, or how many along an axis.

    >>> size(np.ones((2, 3))), size(np.ones((2, 3)), 1)
    (6, 3)
    """
    lengths = K.shape(x)
    if axis is not None:
        return lengths[one_axis(axis, len(lengths))]
    n = 1
    for length in lengths:
        n = n * length
    return n


@portable(np.reshape)
def reshape(K: Any, x: Any, /, shape: Any) -> Any:
    """The same elements, row by row, in another shape; one length may be -1.

    >>> reshape(np.arange(4), (2, -1))
    array([[0, 1],
           [2, 3]])
    """
    return K.reshape(x, shape_of(shape))


@portable(np.ravel)
def ravel(K: Any, x: Any, /) -> Any:
    """The elements in a row.

    >>> ravel(np.ones((2, 1)))
    array([1., 1.])
    """
    return K.reshape(x, (-1,))


@portable(np.transpose)
def transpose(K: Any, x: Any, /, axes: Any = None) -> Any:
    """The axes in another order; in reverse if none is given.

    >>> transpose(np.ones((2, 3, 4)), (0, 2, 1)).shape
    (2, 4, 3)
    """
    n = K.ndim(x)
    order = tuple(reversed(range(n))) if axes is None else axes_of(tuple(axes), n)
    if len(order) != n:
        raise ValueError(f"axes={axes!r} doesn't name each of {n} axes once")
    return K.transpose(x, order)


permute_dims = transpose


@portable(np.matrix_transpose)
def matrix_transpose(K: Any, x: Any, /) -> Any:
    """The last two axes swapped.

    >>> matrix_transpose(np.ones((2, 3, 4))).shape
    (2, 4, 3)
    """
    return swapaxes(x, -1, -2)


@portable(np.swapaxes)
def swapaxes(K: Any, x: Any, /, axis1: int, axis2: int) -> Any:
    """Two axes swapped.

    >>> swapaxes(np.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    order = list(range(K.ndim(x)))
    i, j = one_axis(axis1, len(order)), one_axis(axis2, len(order))
    order[i], order[j] = order[j], order[i]
    return K.transpose(x, tuple(order))


@portable(np.moveaxis)
def moveaxis(K: Any, x: Any, /, source: Any, destination: Any) -> Any:
    """Axes moved to other places; the others keep their order.

    >>> moveaxis(np.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    n = K.ndim(x)
    origin, goal = axes_of(source, n), axes_of(destination, n)
    if len(origin) != len(goal):
        raise ValueError("source and destination name the same number of axes")
    order = [i for i in range(n) if i not in origin]
    for to, from_ in sorted(zip(goal, origin, strict=True)):
        order.insert(to, from_)
    return K.transpose(x, tuple(order))


@portable(np.expand_dims)
def expand_dims(K: Any, x: Any, /, axis: Any) -> Any:
    """New axes of length 1 at these places of the result.

    >>> expand_dims(np.ones(2), (0, 2)).shape
    (1, 2, 1)
    """
    places = axis if isinstance(axis, (tuple, list)) else (axis,)
    for i in sorted(axes_of(tuple(places), K.ndim(x) + len(places))):
        x = K.expand_dims(x, i)
    return x


@portable(np.squeeze)
def squeeze(K: Any, x: Any, /, axis: Any = None) -> Any:
    """Without axes of length 1: those named, or all.

    >>> squeeze(np.ones((1, 2, 1)), 0).shape
    (2, 1)
    """
    lengths = K.shape(x)
    if axis is None:
        return K.squeeze(x, tuple([i for i, n in enumerate(lengths) if is_one(n)]))
    axes = axes_of(axis, len(lengths))
    for i in axes:
        if isinstance(lengths[i], int) and lengths[i] != 1:
            raise ValueError(f"axis {i} has length {lengths[i]}, and 1 was expected")
    return K.squeeze(x, axes)


def is_one(length: Any) -> bool:
    if not isinstance(length, int):
        raise ValueError(
            "squeeze can't know which axes have length 1, since the graph leaves a "
            "length open: name them with axis="
        )
    return length == 1


@portable(np.broadcast_to)
def broadcast_to(K: Any, x: Any, /, shape: Any) -> Any:
    """The array repeated along new axes and along those of length 1.

    >>> broadcast_to(np.arange(2), (2, 2))
    array([[0, 1],
           [0, 1]])
    """
    lengths = shape_of(shape)
    return K.broadcast_to(operand(K, x, first_array(K, lengths)), lengths)


@portable(np.broadcast_arrays)
def broadcast_arrays(K: Any, /, *arrays: Any) -> tuple[Any, ...]:
    """The arrays, all in the shape that they have together.

    >>> [x.shape for x in broadcast_arrays(np.ones(2), np.ones((3, 1)))]
    [(3, 2), (3, 2)]
    """
    like = first_array(K, arrays)
    xs = [operand(K, x, like) for x in arrays]
    shape = K.broadcast_shape([K.shape(x) for x in xs])
    return tuple([K.broadcast_to(x, shape) for x in xs])
