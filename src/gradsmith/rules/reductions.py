"""Reductions: many elements to one."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._rule import composite, differentiable, linear


def spread(dy: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """Repeat what a reduction of x over `axis` gave, to the shape of x."""
    if axis is not None and not keepdims and x.ndim:
        dy = np.expand_dims(dy, axis)
    elif axis is None and not keepdims:
        dy = np.reshape(dy, (1,) * x.ndim)
    return np.broadcast_to(dy, x.shape)


def sum_transpose(
    dy: Any, y: Any, x: Any, axis: Any = None, dtype: Any = None, out: Any = None,
    keepdims: Any = False,
) -> Any:
    return spread(dy, x, axis, keepdims)


linear(np.sum, sum_transpose)
