"""Arb's balls and series, and arrays of such objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ....core.errors import GradsmithError, UnsupportedOperationError

try:
    _flint: Any = import_module("flint")
except ImportError as error:
    raise GradsmithError(
        "an audit needs python-flint, which computes certified values, and it is not "
        'installed\n  what to do: pip install "gradsmith[audit]"'
    ) from error

arb, arb_series, ctx = _flint.arb, _flint.arb_series, _flint.ctx


def each(fn: Callable[..., Any], n: int = 1) -> Any:
    """A function of n balls as one of arrays of them: 50 ns a call more."""
    return np.frompyfunc(fn, n, 1)


_from_float = each(arb)


def balls_of(x: Any) -> Any:
    """Floating or whole numbers as exact balls.

    >>> [float(ball) for ball in balls_of(np.array([0.5, 3.0]))]
    [0.5, 3.0]
    """
    if isinstance(x, arb):
        return _array(x)
    x = np.asarray(x)
    if x.dtype == object:
        return x
    if x.dtype.kind in "iub":
        return _array(_from_float(x.astype(object)))
    return _array(_from_float(x.astype(np.float64).astype(object)))


def _array(x: Any) -> Any:
    """An array also of what NumPy made a scalar."""
    if isinstance(x, np.ndarray):
        return x
    y = np.empty((), object)
    y[()] = x
    return y


def zeros(shape: tuple[int, ...]) -> Any:
    return np.full(shape, arb(0), object)


def ones(shape: tuple[int, ...]) -> Any:
    return np.full(shape, arb(1), object)


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Compute with so many bits."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


class ObjectArray(NDArrayOperatorsMixin):
    """An array on which `call` runs the functions of NumPy and SciPy.

    A subclass has the objects in an array `value`; `fn` of a call is a function, or a
    ufunc and the name of its method.
    """

    __slots__ = ()
    __array_priority__ = 2000
    value: Any

    def call(self, fn: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def size(self) -> int:
        return self.value.size

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value.tolist()})"

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kw: Any) -> Any:
        return self.call(ufunc if method == "__call__" else (ufunc, method), args, kw)

    def __array_function__(self, fn: Any, types: Any, args: Any, kw: Any) -> Any:
        return self.call(fn, args, kw)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise UnsupportedOperationError(
            "certified values can't become a plain NumPy array, which is rounded. "
            "Something in the definition asks for one (np.asarray, float, a function "
            "that is not NumPy's): give the true function with reference=..."
        )
