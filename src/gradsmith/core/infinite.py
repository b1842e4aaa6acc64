"""Slopes and cotangents that overflow.

The true slope of 1/x at 1e-200 is -1e400: rounded to float64 it is -inf. Behind it the
true number is finite, so that times 0 it is 0, where IEEE 754 says NaN: a branch masked
by `np.where` passes 0 on, and a clipped value nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
        elif ufunc is np.matmul:
            y = _with_sums(y, ufunc, xs, kwargs)
        return marked(y)

    def __array_function__(self, fn: Any, types: Any, args: Any, kwargs: Any) -> Any:
        kwargs = {name: _each(plain, x) for name, x in kwargs.items()}
        xs = _each(plain, args)
        y = fn(*xs, **kwargs)
        if fn in (np.dot, np.inner, np.outer, np.tensordot, np.einsum):
            y = _with_sums(y, fn, xs, kwargs)
        return _each(marked, y)


_KNOWN = (np.ndarray, np.generic)


def plain(x: Any) -> Any:
    """x without a mark."""
    if isinstance(x, Symbolic):
        return x.overflowing(False)
    return x.view(np.ndarray) if isinstance(x, Infinite) else x


def _each(change: Callable[[Any], Any], x: Any) -> Any:
    if type(x) in (list, tuple):  # an axis too: functions tell one from the other
        return type(x)(_each(change, part) for part in x)
    return change(x)


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


def _with_sums(y: Any, fn: Any, xs: Sequence[Any], kwargs: Any) -> Any:
    """Sums of products, y = fn(*xs), with the products of 0 and of infinite numbers.

    What is infinite, as 1 or -1, gives the sign of a sum; if they differ it is NaN.
    """
    at = [i for i, x in enumerate(xs) if isinstance(x, _KNOWN) and np.isinf(x).any()]
    if len(at) != 1 or y.dtype.kind != "f" or not np.isnan(y).any():
        return y

    def summed(x: Any, others: Any = xs) -> Any:
        return fn(*others[: at[0]], x, *others[at[0] + 1 :], **kwargs)

    x = xs[at[0]]
    far = np.isinf(x)
    sign = np.where(far, np.sign(x), 0)
    lead = summed(sign)
    most = summed(np.abs(sign), [np.abs(x) if isinstance(x, _KNOWN) else x for x in xs])
    sums = np.where(np.abs(lead) == most, np.copysign(np.inf, lead), np.nan)
    return np.where(most == 0, summed(np.where(far, 0, x)), sums)


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
