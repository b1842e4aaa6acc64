"""Axes by number, checked as NumPy checks them."""

from __future__ import annotations

from operator import index
from typing import Any

import numpy as np


def one_axis(axis: Any, ndim: int) -> int:
    """An axis counted from the front.

    >>> one_axis(-1, 3)
    2
    """
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise TypeError(f"an axis is a whole number, not {axis!r}")
    if not -ndim <= axis < ndim:
        raise np.exceptions.AxisError(axis, ndim)
    return index(axis) + ndim if axis < 0 else index(axis)


def axes_of(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes counted from the front; None means all.

    >>> axes_of((0, -1), 3), axes_of(None, 2)
    ((0, 2), (0, 1))
    """
    if axis is None:
        return tuple(range(ndim))
    if type(axis) is int and -ndim <= axis < ndim:
        return (axis + ndim if axis < 0 else axis,)
    if not isinstance(axis, (tuple, list)):
        return (one_axis(axis, ndim),)
    found = tuple([one_axis(each, ndim) for each in axis])
    if len(set(found)) < len(found):
        raise ValueError(f"axis={axis!r} names an axis twice")
    return found
