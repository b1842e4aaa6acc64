"""New arrays, beside another (`like=`) or in its likeness; dtypes and their limits.

`like=` says whose array is made, and where: it is on that array's device. The dtype is
NumPy's default as ever: say `dtype=x.dtype` for that of x.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.arrays import common_framework, framework_of
from ..core.escapes import traced_in
from ..core.tape import Traced
from ..core.tensor import joined
from ..frameworks._dtypes import is_inexact, name_of
from ..operations.portable import shape_of
from ._dispatch import NUMPY, foreign_kernels, native, portable
from ._joining import stack
from ._operands import converted, first_array, kind_of

_Float = np.float64
_astype: Any = np.astype  # of tensors too


def asarray(x: Any, /, dtype: Any = None, *, like: Any = None) -> Any:
    """An array of numbers, lists or a NumPy array, of the framework of `like`.

    An array of a framework stays what it is; one of another than `like`'s raises. Of
    arrays in lists one array is made, and derivatives go through.

    >>> asarray([1, 2], float)
    array([1., 2.])
    """
    found = framework_of(x)
    if found not in (None, NUMPY) and like is not None:
        common_framework([x, like], "gnp.asarray")  # raises if they differ
    K = foreign_kernels("asarray", x if like is None else like)
    if K is not None:
        x = native(x)
        name = K.result_type(kind_of(K, x)) if dtype is None else name_of(dtype)
        return converted(K, x, name, first_array(K, (like, x)))
    y: Any = joined(x)
    if found is None and not isinstance(y, Traced):
        return np.asarray(y, dtype)
    return y if dtype is None else _astype(y, np.dtype(dtype), copy=False)


def array(x: Any, /, dtype: Any = None, *, like: Any = None) -> Any:
    """A new array, as `asarray` makes it.

    >>> array([1, 2], float)
    array([1., 2.])
    """
    y = asarray(x, dtype, like=like)
    return stack([y])[0] if y is x else y


def zeros(shape: Any, dtype: Any = _Float, *, like: Any = None) -> Any:
    """An array of zeros.

    >>> zeros(2)
    array([0., 0.])
    """
    return full(shape, 0, dtype, like=like)


def ones(shape: Any, dtype: Any = _Float, *, like: Any = None) -> Any:
    """An array of ones.

    >>> ones(2)
    array([1., 1.])
    """
    return full(shape, 1, dtype, like=like)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, like: Any = None) -> Any:
    """An array of one value.

    >>> full(2, 3)
    array([3, 3])
    """
    K = foreign_kernels("full", like, shape, fill_value)
    if K is None:
        dtype = dtype if dtype is None else np.dtype(name_of(dtype))
        if next(traced_in(fill_value), None) is None:
            return np.full(shape, fill_value, dtype)
        return np.broadcast_to(asarray(fill_value, dtype), shape)
    name = K.result_type(kind_of(K, fill_value)) if dtype is None else name_of(dtype)
    value = converted(K, fill_value, name, like)
    return K.broadcast_to(value, shape_of(shape))


def arange(
    start: Any,
    /,
    stop: Any = None,
    step: Any = 1,
    dtype: Any = None,
    *,
    like: Any = None,
) -> Any:
    """Numbers at equal distances: from start (or 0) up to stop, without it.

    >>> arange(3)
    array([0, 1, 2])
    """
    if stop is None:
        start, stop = 0, start
    K = foreign_kernels("arange", like, start, stop, step)
    if K is None:
        x: Any = np.arange(start, stop, step)
        return x if dtype is None else x.astype(name_of(dtype))
    beside = first_array(K, (like, start, stop, step))
    kinds = [kind_of(K, x) for x in (start, stop, step)]
    if dtype is None:  # a 32-bit length of a graph counts as a number
        whole = not any(is_inexact(K.result_type(kind)) for kind in kinds)
        dtype = "int64" if whole else K.result_type(*kinds)
    return K.arange(start, stop, step, name_of(dtype), beside)


def eye(
    N: int, M: int | None = None, k: int = 0, dtype: Any = _Float, *, like: Any = None
) -> Any:
    """A matrix with ones on its k-th diagonal, and zeros elsewhere.

    >>> eye(2)
    array([[1., 0.],
           [0., 1.]])
    """
    K = foreign_kernels("eye", like)
    if K is None:
        return np.eye(N, M, k, np.dtype(name_of(dtype)))
    rows = K.arange(0, N, 1, "int64", like)
    columns = K.arange(0, N if M is None else M, 1, "int64", like)
    distance = K.expand_dims(columns, 0) - K.expand_dims(rows, 1)
    return K.cast(distance == k, name_of(dtype))


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    *,
    endpoint: bool = True,
    dtype: Any = None,
    like: Any = None,
) -> Any:
    """So many numbers at equal distances, from start to stop.

    >>> linspace(0, 1, 3)
    array([0. , 0.5, 1. ])
    """
    K = foreign_kernels("linspace", start, stop, like)
    if K is None:
        return np.linspace(joined(start), joined(stop), num, endpoint, dtype=dtype)
    start, stop = native(start), native(stop)
    beside = first_array(K, (start, stop, like))
    name = K.result_type(kind_of(K, start), kind_of(K, stop), "float64")
    start, stop = converted(K, start, name, beside), converted(K, stop, name, beside)
    parts = num - 1 if endpoint else num
    steps = K.arange(0, num, 1, name, beside) / (parts or 1)
    far = K.ndim(start) if K.ndim(start) > K.ndim(stop) else K.ndim(stop)
    y = start + (stop - start) * K.reshape(steps, (num,) + (1,) * far)
    return y if dtype is None else K.cast(y, name_of(dtype))


def _full_like(numpy: Any, value: int, words: str) -> Any:
    def definition(K: Any, x: Any, /, dtype: Any = None) -> Any:
        return full_like(x, value, dtype)

    definition.__name__ = definition.__qualname__ = numpy.__name__
    definition.__doc__ = f"{words}, in the shape, dtype and place of x."
    return portable(numpy)(definition)


zeros_like = _full_like(np.zeros_like, 0, "Zeros")
ones_like = _full_like(np.ones_like, 1, "Ones")
empty_like = _full_like(np.empty_like, 0, "Elements of no matter")


@portable(np.full_like)
def full_like(K: Any, x: Any, /, fill_value: Any, dtype: Any = None) -> Any:
    """One value in the shape, dtype and place of x.

    >>> full_like(np.zeros(2), 3)
    array([3., 3.])
    """
    name = K.result_type(K.kind(x)) if dtype is None else name_of(dtype)
    return K.broadcast_to(converted(K, fill_value, name, x), K.shape(x))
