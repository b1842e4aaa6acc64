"""Matrices whose columns are powers."""

from __future__ import annotations

from math import isqrt
from operator import index
from typing import Any

import numpy as np

from ..core.calls import call_function
from ..core.hooks import FUNCTION
from ..core.tape import Traced
from ..rules.polynomials import POWERS, powers
from ._dispatch import portable, run_numpy
from ._operands import operand


def _vander(x: Any, *options: Any, **named: Any) -> Any:
    if x.__class__ is np.ndarray:
        return powers(x, *options, **named)
    if isinstance(x, Traced) and not FUNCTION.wrappers:
        return call_function(POWERS, (x, *options), named)
    return run_numpy(np.vander, (x, *options), named)


@portable(_vander)
def vander(K: Any, x: Any, /, N: int | None = None, increasing: bool = False) -> Any:
    """N powers of each element, the highest first; as many as elements by default.

    As with NumPy, float16 and float32 give float64, and integers give int64.

    >>> vander(np.array([2, 3]), 3)
    array([[4, 2, 1],
           [9, 3, 1]])
    """
    x = operand(K, x)
    if K.ndim(x) != 1:
        raise ValueError(f"vander needs an array with one axis, not {K.ndim(x)}")
    n = K.shape(x)[0] if N is None else index(N)
    if not isinstance(n, int):
        raise ValueError(
            "vander needs N if the length of its array is not known when it is traced"
        )
    if n < 0:
        raise ValueError(f"N is at least 0, not {n}")
    x = K.cast(x, K.result_type(K.kind(x), "int64"))
    y = _table(K, x, n)[:, :n]
    return y if increasing else K.flip(y, (1,))


def _table(K: Any, x: Any, n: int) -> Any:
    """At least n powers of each element, from 0 on.

    Products of two tables, x**(i * m) * x**j, each of about the root of n powers: few
    operations, whose derivatives are exact at 0 too.
    """
    one = K.ones_like(x)
    if n <= 2:
        return K.stack([one, x], 1)
    m = isqrt(n - 1) + 1
    parts = -(-n // m)
    low = _table(K, x, m)[:, :m]
    high = _table(K, low[:, m - 1] * x, parts)[:, :parts]
    products = K.expand_dims(high, 2) * K.expand_dims(low, 1)
    return K.reshape(products, (K.shape(x)[0], parts * m))
