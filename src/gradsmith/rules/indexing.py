"""Taking parts of an array: basic, integer, boolean and mixed indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._rule import linear, primitive


@primitive
def index(x: Any, key: Any) -> Any:
    """Return `x[key]`."""
    return x[key]


@primitive
def scatter(dy: Any, key: Any, shape: tuple[int, ...]) -> Any:
    """Return zeros of a shape with `dy` added at `key`: the transpose of `index`."""
    x = np.zeros(shape, dy.dtype)
    if _is_basic(key):
        x[key] = dy  # no element is named twice
    else:
        np.add.at(x, key, dy)
    return x


def _is_basic(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    return all(
        part is None or part is Ellipsis or isinstance(part, (int, slice, np.integer))
        for part in parts
    )


linear(index, lambda dy, y, x, key: scatter(dy, key, x.shape))
linear(scatter, lambda dx, x, dy, key, shape: index(dx, key))
