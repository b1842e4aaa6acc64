"""dtypes: conversion, promotion, and their limits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.arrays import framework_of
from ..frameworks import _dtypes
from ..frameworks._dtypes import kind_of_value, name_of
from ._dispatch import NUMPY, foreign_kernels, portable
from ._operands import is_array, kind_of


def _astype(x: Any, dtype: Any) -> Any:
    name = name_of(dtype)
    if not (framework_of(x) or hasattr(x, "__array_function__")):
        x = np.asarray(x)
    return x if x.dtype.name == name else np.astype(x, np.dtype(name))


@portable(_astype)
def astype(K: Any, x: Any, dtype: Any, /) -> Any:
    """The elements in another dtype: NumPy's, its name, or any framework's.

    >>> astype(np.array([1.7]), "int32")
    array([1], dtype=int32)
    """
    return K.cast(x, name_of(dtype))


def result_type(*arrays_and_dtypes: Any) -> Any:
    """The dtype that NumPy promotes all of these to, as the framework's dtype.

    >>> result_type(np.ones(2, np.float32), 1.0), result_type("int32", "float32")
    (dtype('float32'), dtype('float64'))
    """
    K = foreign_kernels("result_type", *arrays_and_dtypes)
    if K is not None:
        return K.dtype_of(K.result_type(*[_kind(K, x) for x in arrays_and_dtypes]))
    return np.dtype(_dtypes.result_type(*[_kind(NUMPY, x) for x in arrays_and_dtypes]))


def _kind(K: Any, x: Any) -> Any:
    if isinstance(x, (bool, int, float, complex, np.generic, list)):
        return kind_of_value(x)
    if framework_of(x) == NUMPY:
        return x.dtype.name
    return kind_of(K, x) if is_array(K, x) else name_of(x)
