"""Several arrays to one, one to several, and edges around one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..core.symbolic import Symbolic
from ..frameworks._dtypes import name_of
from ._axes import one_axis
from ._dispatch import portable
from ._operands import converted, first_array, operand, promoted
from ._shaping import broadcast_arrays, moveaxis, reshape


@portable(np.concatenate)
def concatenate(
    K: Any, arrays: Sequence[Any], /, axis: int | None = 0, *, dtype: Any = None
) -> Any:
    """The arrays one after the other along an axis; all in a row if it is None.

    >>> concatenate([np.array([1, 2]), np.array([3.0])])
    array([1., 2., 3.])
    """
    xs = _of_one_type(K, arrays, dtype)
    if axis is None:
        return K.concat([K.reshape(x, (-1,)) for x in xs], 0)
    return K.concat(xs, one_axis(axis, K.ndim(xs[0])))


concat = concatenate


@portable(np.stack)
def stack(K: Any, arrays: Sequence[Any], /, axis: int = 0, *, dtype: Any = None) -> Any:
    """The arrays one after the other along a new axis.

    >>> stack([np.array([1, 2]), np.array([3, 4])], axis=1)
    array([[1, 3],
           [2, 4]])
    """
    xs = _of_one_type(K, arrays, dtype)
    return K.stack(xs, one_axis(axis, K.ndim(xs[0]) + 1))


def _of_one_type(K: Any, arrays: Any, dtype: Any) -> list[Any]:
    if not isinstance(arrays, (list, tuple)):
        arrays = unstack(arrays)
    xs = promoted(K, *arrays)
    return xs if dtype is None else [K.cast(x, name_of(dtype)) for x in xs]


@portable(np.unstack)
def unstack(K: Any, x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The parts along an axis, without it.

    >>> unstack(np.array([[1, 2], [3, 4]]))
    (array([1, 2]), array([3, 4]))
    """
    return tuple(K.unstack(x, one_axis(axis, K.ndim(x))))


@portable(np.split)
def split(K: Any, x: Any, /, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Parts along an axis: so many equal ones, or cut at these places.

    >>> split(np.arange(5), [2, 4])
    [array([0, 1]), array([2, 3]), array([4])]
    """
    i = one_axis(axis, K.ndim(x))
    n = K.shape(x)[i]
    if isinstance(indices_or_sections, int):
        if isinstance(n, int) and n % indices_or_sections:
            raise ValueError(
                f"{n} elements don't split into {indices_or_sections} equal parts"
            )
        return K.split(x, indices_or_sections, i)
    cuts = [0, *indices_or_sections, n]
    before = (slice(None),) * i
    return [x[(*before, slice(a, b))] for a, b in pairwise(cuts)]


def _meshgrid(*arrays: Any, indexing: str = "xy") -> Any:
    return _grid([np.asarray(x) if np.ndim(x) == 0 else x for x in arrays], indexing)


@portable(_meshgrid)
def meshgrid(K: Any, /, *arrays: Any, indexing: str = "xy") -> Any:
    """The coordinates of a grid: each array spread along an axis of its own.

    >>> [x.shape for x in meshgrid(np.ones(2), np.ones(3))]
    [(3, 2), (3, 2)]
    """
    like = first_array(K, arrays)
    return _grid([operand(K, x, like) for x in arrays], indexing)


def _grid(arrays: list[Any], indexing: str) -> tuple[Any, ...]:
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing is 'xy' or 'ij', not {indexing!r}")
    n = len(arrays)
    if n < 1:
        return ()
    lines = [
        reshape(x, (1,) * i + (-1,) + (1,) * (n - 1 - i)) for i, x in enumerate(arrays)
    ]
    grid = broadcast_arrays(*lines)
    swap = indexing == "xy" and n > 1
    return tuple(moveaxis(x, 0, 1) for x in grid) if swap else grid


_BY_INDEX = ("edge", "reflect", "symmetric", "wrap")


@portable(np.pad)
def pad(
    K: Any,
    x: Any,
    /,
    pad_width: Any,
    mode: str = "constant",
    *,
    constant_values: Any = 0,
) -> Any:
    """The array with elements added at the ends of its axes.

    The mode is "constant", or what of the array is repeated there: "edge", "reflect",
    "symmetric", "wrap".

    >>> pad(np.array([1, 2]), (1, 2))
    array([0, 1, 2, 0, 0])
    """
    n = K.ndim(x)
    widths = K.evaluated(_widths, pad_width, n)
    if mode == "constant":
        value = converted(K, constant_values, K.kind(x), x)
        if K.ndim(value):
            raise ValueError("constant_values is one number here")
        return K.pad(x, widths, value)
    if mode not in _BY_INDEX:
        raise ValueError(f"mode is 'constant' or one of {_BY_INDEX}, not {mode!r}")
    for i, width in enumerate(widths):
        if not isinstance(K.shape(x)[i], int):
            raise ValueError(
                f"pad(mode={mode!r}) needs lengths that are known when it is traced, "
                f"and that of axis {i} is open: give the array a static shape"
            )
        places = K.evaluated(_padded, K.shape(x)[i], width, mode)
        x = K.take(x, K.constant(places, "int64", x), i)
    return x


def _widths(pad_width: Any, n: int) -> list[tuple[int, ...]]:
    return [tuple(map(int, width)) for width in np.broadcast_to(pad_width, (n, 2))]


def _padded(n: int, width: Any, mode: Any) -> list[int]:
    return np.pad(np.arange(n), width, mode=mode).tolist()


def _take(x: Any, indices: Any, axis: Any = None) -> Any:
    if isinstance(indices, Symbolic) and isinstance(x, np.ndarray):
        # NumPy asks the type of x alone.
        return type(indices).__array_function__(
            indices, np.take, (), (x, indices, axis), {}
        )
    plain: Any = indices
    return np.take(x, plain, axis)


@portable(_take)
def take(K: Any, x: Any, indices: Any, /, axis: int | None = None) -> Any:
    """The elements at these places along an axis; negative ones count from the end.

    >>> take(np.array([4, 5, 6]), np.array([0, -1]))
    array([4, 6])
    """
    x = operand(K, x, indices)
    if axis is None:
        x, axis = K.reshape(x, (-1,)), 0
    indices = operand(K, indices, x)
    return K.take(x, indices, one_axis(axis, K.ndim(x)))


@portable(np.take_along_axis)
def take_along_axis(K: Any, x: Any, indices: Any, /, axis: int | None = -1) -> Any:
    """The elements at places along an axis that may differ from line to line.

    >>> x = np.array([[3, 1], [4, 2]])
    >>> take_along_axis(x, np.argsort(x), axis=1)
    array([[1, 3],
           [2, 4]])
    """
    x = operand(K, x, indices)
    indices = operand(K, indices, x)
    if axis is None:
        x, axis = K.reshape(x, (-1,)), 0
    if K.ndim(indices) != K.ndim(x):
        raise ValueError("x and the indices have the same number of axes")
    return K.take_along_axis(x, indices, one_axis(axis, K.ndim(x)))
