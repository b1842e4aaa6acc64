"""Functions on balls that are defined by others: clipping, norms, spreads."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from ...core.errors import UnsupportedOperationError
from ...rules import load_present, pointwise
from ...rules.axes import counted
from ...rules.reductions import logaddexp_reduce
from ...rules.statistics import variance
from .arb import balls_of
from .balls import CALLS, Balls
from .choices import greatest

load_present()
CALLS[pointwise.clip_both] = lambda x, low, high: np.minimum(np.maximum(x, low), high)
CALLS[pointwise.clip_below] = lambda x, low: np.maximum(x, low)
CALLS[pointwise.clip_above] = lambda x, high: np.minimum(x, high)


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Any:
    """A vector's norm; of a whole array if no axis is given."""
    if isinstance(axis, tuple) or (ord is not None and axis is None and x.ndim > 1):
        raise UnsupportedOperationError("norms of matrices have no certified value yet")
    size = np.abs(x)
    if ord in (inf, -inf):
        return (np.max if ord > 0 else np.min)(size, axis=axis, keepdims=keepdims)
    if ord == 1:
        return np.sum(size, axis=axis, keepdims=keepdims)
    if ord in (None, 2):
        return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))
    return np.sum(size**ord, axis=axis, keepdims=keepdims) ** (1 / Balls(balls_of(ord)))


def vector_norm(
    x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2
) -> Any:
    return norm(x, ord, axis, keepdims)


CALLS[np.linalg.norm] = norm
CALLS[np.linalg.vector_norm] = vector_norm


def var(a: Any, fn: Any, options: Any) -> Any:
    axis = options["axis"]
    free = counted(True, a.shape, axis) - options["ddof"]
    off = a - np.mean(a, axis=axis, keepdims=True)
    kept = options.get("keepdims") is True
    return np.sum(off * off, axis=axis, keepdims=kept) / free


def log_of_sum(x: Any, axis: Any = 0, **options: Any) -> Any:
    """The reduction of np.logaddexp; its greatest is a constant that cancels."""
    top = Balls(greatest(x.value, axis=axis, keepdims=True), x.dtype)
    y = np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top
    if options.get("keepdims"):
        return y
    return np.squeeze(y, axis)


CALLS[variance] = var
CALLS[logaddexp_reduce] = log_of_sum
