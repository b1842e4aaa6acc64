"""Elements in another order, or several times."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..operations.portable import shape_of
from ._axes import axes_of, one_axis
from ._dispatch import portable
from ._operands import first_array, is_array, operand


@portable(np.flip)
def flip(K: Any, x: Any, /, axis: Any = None) -> Any:
    """The elements in reverse along axes.

    >>> flip(np.array([1, 2, 3]))
    array([3, 2, 1])
    """
    return K.flip(x, axes_of(axis, K.ndim(x)))


@portable(np.roll)
def roll(K: Any, x: Any, /, shift: Any, axis: Any = None) -> Any:
    """The elements moved along axes; what leaves at the end comes in at the start.

    >>> roll(np.array([1, 2, 3]), 1)
    array([3, 1, 2])
    """
    if axis is None:
        total = np.sum(shift) if isinstance(shift, (tuple, list)) else shift
        return K.reshape(K.roll(K.reshape(x, (-1,)), (total,), (0,)), K.shape(x))
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple([one_axis(i, K.ndim(x)) for i in axes])
    shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(axes) == 1 and len(shifts) > 1:
        axes = axes * len(shifts)
    return K.roll(x, shifts, axes) if axes else x


@portable(np.tile)
def tile(K: Any, x: Any, /, reps: Any) -> Any:
    """The whole array, so many times along each axis.

    >>> tile(np.array([1, 2]), 2)
    array([1, 2, 1, 2])
    """
    times = shape_of(reps)
    n = K.ndim(x)
    times = (1,) * (n - len(times)) + times
    if len(times) > n:
        x = K.reshape(x, (1,) * (len(times) - n) + K.shape(x))
    return K.tile(x, times)


@portable(np.repeat)
def repeat(K: Any, x: Any, /, repeats: Any, axis: int | None = None) -> Any:
    """Each element so many times, one after the other.

    >>> repeat(np.array([1, 2]), 2)
    array([1, 1, 2, 2])
    """
    if axis is None:
        x, axis = K.reshape(x, (-1,)), 0
    i = one_axis(axis, K.ndim(x))
    if isinstance(repeats, int) or is_array(K, repeats):
        return K.repeat(x, repeats, i)
    n = K.shape(x)[i]
    if not isinstance(n, int):
        return K.repeat(x, K.constant(repeats, "int64", x), i)
    places = K.evaluated(_repeated, n, repeats)  # so that a compiler knows how many
    return K.take(x, K.constant(places, "int64", x), i)


def _repeated(n: int, repeats: Any) -> list[int]:
    return np.repeat(np.arange(n), repeats).tolist()


def _atleast(numpy: Any, widen: Any) -> Any:
    def definition(K: Any, /, *arrays: Any) -> Any:
        like = first_array(K, arrays)
        xs = [operand(K, x, like) for x in arrays]
        ys: Any = tuple([K.reshape(x, widen(K.shape(x))) for x in xs])
        return ys if len(arrays) > 1 else ys[0]

    definition.__name__ = definition.__qualname__ = numpy.__name__
    axes = numpy.__name__[-2]
    definition.__doc__ = (
        f"Each array with at least {axes} ax{'i' if axes == '1' else 'e'}s."
    )
    return portable(numpy)(definition)


atleast_1d = _atleast(np.atleast_1d, lambda s: s or (1,))
atleast_2d = _atleast(np.atleast_2d, lambda s: (1,) * (2 - len(s)) + s)
atleast_3d = _atleast(
    np.atleast_3d,
    lambda s: {0: (1, 1, 1), 1: (1, *s, 1), 2: (*s, 1)}.get(len(s), s),
)
