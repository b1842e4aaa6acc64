"""Functions of the caller's, applied along axes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from ..core.rule import composite, convert


def apply_along_axis(
    func1d: Any, axis: int, arr: Any, *args: Any, **kwargs: Any
) -> Any:
    axis = normalize_axis_index(axis, np.ndim(arr))
    last = np.moveaxis(arr, axis, -1)
    lines = np.unstack(np.reshape(last, (-1, last.shape[-1])))
    if not lines:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    results = [func1d(line, *args, **kwargs) for line in lines]
    y = convert(np.stack(results), np.result_type(results[0]))
    y = np.reshape(y, last.shape[:-1] + y.shape[1:])
    # A result's own axes stand where the axis was.
    own = range(last.ndim - 1, y.ndim)
    return np.moveaxis(y, own, range(axis, axis + len(own)))


def apply_over_axes(func: Any, a: Any, axes: Any) -> Any:
    for axis in (axes,) if np.ndim(axes) == 0 else axes:
        y = func(a, axis)
        if y.ndim != a.ndim:
            y = np.expand_dims(y, axis)
        if y.ndim != a.ndim:
            raise ValueError("function is not returning an array of the correct shape")
        a = y
    return a


composite(np.apply_along_axis, apply_along_axis, lists=True)
composite(np.apply_over_axes, apply_over_axes)
