"""Slopes and cotangents that overflow.

The true slope of 1/x at 1e-200 is -1e400: rounded to float64 it is -inf. Behind it the
true number is finite, so that times 0 it is 0, where IEEE 754 says NaN: a branch masked
by `np.where` passes 0 on, and a clipped value nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .symbolic import Symbolic


class Infinite(np.ndarray):
    """An array with infinite elements, which stand for numbers too large for it."""

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        xs = [plain(x) for x in inputs]
        if kwargs.get("out"):
            kwargs["out"] = tuple(map(plain, kwargs["out"]))
        if any(hasattr(x, "__array_ufunc__") and not isinstance(x, _KNOWN) for x in xs):
            return NotImplemented  # a tensor's or a symbol's to answer
        y = getattr(ufunc, method)(*xs, **kwargs)
        if ufunc is np.multiply and method == "__call__" and y.dtype.kind in "fc":
            y = _with_products(y, *xs)
        return marked(y)

    def __array_function__(self, fn: Any, types: Any, args: Any, kwargs: Any) -> Any:
        args = [_all_plain(x) for x in args]
        return marked(fn(*args, **{name: _all_plain(x) for name, x in kwargs.items()}))


_KNOWN = (np.ndarray, np.generic)


def plain(x: Any) -> Any:
    """x without a mark."""
    return x.view(np.ndarray) if isinstance(x, Infinite) else x


def _all_plain(x: Any) -> Any:
    return [plain(part) for part in x] if isinstance(x, (list, tuple)) else plain(x)


def marked(x: Any) -> Any:
    """x, marked if an element is infinite; of a symbol that is not known."""
    if isinstance(x, Symbolic):
        return x.overflowing()
    if not isinstance(x, _KNOWN) or x.dtype.kind not in "fc" or not np.isinf(x).any():
        return x
    return np.asarray(x).view(Infinite)


def _with_products(y: Any, x1: Any, x2: Any) -> Any:
    """x1 * x2 with the products of 0 and of infinite numbers put right.

    An infinite number counts as its direction, as in annex G of C.
    """
    at = np.isinf(x1) | np.isinf(x2)
    way = _direction(x1) * _direction(x2)
    far = np.empty_like(y)
    if y.dtype.kind == "c":
        far.real, far.imag = _scaled(way.real), _scaled(way.imag)
    else:
        far[...] = _scaled(way)
    return np.where(at & (way == way), far, y)


def _direction(x: Any) -> Any:
    """x, with 1 for what is infinite and 0 for the part beside it."""
    if not np.iscomplexobj(x):
        return np.where(np.isinf(x), np.copysign(1, x), x)
    way = np.where(np.isinf(x.real), np.sign(x.real), 0) + 1j * np.where(
        np.isinf(x.imag), np.sign(x.imag), 0
    )
    return np.where(np.isinf(x), way, x)


def _scaled(way: Any) -> Any:
    return np.where(way == 0, way, np.copysign(np.inf, way))
