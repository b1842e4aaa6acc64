"""Shapes: the same elements in another arrangement."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._cotangent import unbroadcast
from .._rule import differentiable, linear

linear(np.reshape, lambda dy, y, x, *_, **__: np.reshape(dy, x.shape))
linear(np.expand_dims, lambda dy, y, x, axis: np.reshape(dy, x.shape))
linear(np.broadcast_to, lambda dy, y, x, *_, **__: unbroadcast(dy, x.shape))
linear(np.astype, lambda dy, y, x, dtype, **_: dy)
linear(np.real, lambda dy, y, x: dy)
linear(np.conjugate, lambda dy, y, x: np.conj(dy))


# y = x1 where c, else x2
def where_jvp(dx: Any, y: Any, c: Any, x1: Any, x2: Any) -> Any:
    return np.where(c, dx[1], dx[2])


differentiable(
    np.where,
    (
        lambda dy, y, c, x1, x2: None,
        lambda dy, y, c, x1, x2: np.where(c, dy, 0),
        lambda dy, y, c, x1, x2: np.where(c, 0, dy),
    ),
    where_jvp,
    saves="c",
    arrays=3,
)
