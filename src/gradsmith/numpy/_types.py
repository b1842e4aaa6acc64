"""dtypes: conversion, promotion, and their limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.arrays import framework_of
from . import _dtypes
from ._dispatch import NUMPY, foreign_kernels, portable
from ._dtypes import kind_of_value, name_of, real_of
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


@dataclass(frozen=True)
class FloatInfo:
    """The limits of a floating dtype, as Python numbers, which don't promote."""

    dtype: str
    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float

    @property
    def tiny(self) -> float:
        return self.smallest_normal


def finfo(x: Any, /) -> FloatInfo:
    """The limits of a floating dtype, or of the dtype of an array.

    >>> finfo("float32").eps
    1.1920928955078125e-07
    """
    dtype = x if isinstance(x, (str, type)) else getattr(x, "dtype", x)
    name = real_of(name_of(dtype))
    if name == "bfloat16":  # 8 bits of mantissa, and float32's exponents
        top = (2 - 2.0**-7) * 2.0**127
        return FloatInfo(name, 16, 2.0**-7, top, -top, 2.0**-126)
    info = np.finfo(name)
    limits = (info.eps, info.max, info.min, info.smallest_normal)
    return FloatInfo(name, info.bits, *map(float, limits))
