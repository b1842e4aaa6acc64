"""NumPy's names for the arrays of every framework: `import gradsmith.numpy as gnp`.

A function runs in the framework of the arrays it is given (the engine's tensors are
NumPy's), eager or compiled, and is differentiated there.
Axes, `keepdims`, dtypes and promotion are NumPy 2's everywhere. The names are NumPy's
and the array API's (`concatenate` and `concat`, `arccos` and `acos`).

>>> import numpy as np
>>> import gradsmith.numpy as gnp
>>> gnp.mean(np.array([[1, 2], [3, 4]]), axis=0)
array([2., 3.])
"""

from __future__ import annotations

from math import e, inf, nan, pi
from typing import Any

import numpy as _np

from ..frameworks._dtypes import finfo
from . import linalg, special
from ._averages import (
    average,
    nanmean,
    nanprod,
    nansum,
)
from ._choosing import (
    angle,
    around,
    clip,
    heaviside,
    imag,
    isclose,
    nan_to_num,
    real,
    round,
    sinc,
    where,
)
from ._creation import (
    arange,
    array,
    asarray,
    empty_like,
    eye,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from ._diagonals import (
    diag,
    diagonal,
    trace,
    tril,
    triu,
)
from ._elementwise import (
    abs,
    absolute,
    acos,
    acosh,
    add,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctan2,
    arctanh,
    asin,
    asinh,
    atan,
    atan2,
    atanh,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    cbrt,
    ceil,
    conj,
    conjugate,
    copysign,
    cos,
    cosh,
    deg2rad,
    degrees,
    divide,
    equal,
    exp,
    exp2,
    expm1,
    floor,
    floor_divide,
    fmax,
    fmin,
    fmod,
    greater,
    greater_equal,
    hypot,
    invert,
    isfinite,
    isinf,
    isnan,
    left_shift,
    less,
    less_equal,
    log,
    log1p,
    log2,
    log10,
    logaddexp,
    logaddexp2,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    maximum,
    minimum,
    mod,
    multiply,
    negative,
    not_equal,
    positive,
    pow,
    power,
    rad2deg,
    radians,
    reciprocal,
    remainder,
    right_shift,
    rint,
    sign,
    signbit,
    sin,
    sinh,
    sqrt,
    square,
    subtract,
    tan,
    tanh,
    true_divide,
    trunc,
)
from ._joining import (
    concat,
    concatenate,
    meshgrid,
    pad,
    split,
    stack,
    take,
    take_along_axis,
    unstack,
)
from ._missing import missing as _missing
from ._ordering import (
    argmax,
    argmin,
    argsort,
    cumprod,
    cumsum,
    diff,
    median,
    searchsorted,
    sort,
)
from ._powers import vander
from ._products import (
    cross,
    dot,
    einsum,
    inner,
    kron,
    matmul,
    outer,
    tensordot,
    vecdot,
)
from ._reductions import (
    all,
    amax,
    amin,
    any,
    count_nonzero,
    max,
    mean,
    min,
    prod,
    ptp,
    std,
    sum,
    var,
)
from ._repeating import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    flip,
    repeat,
    roll,
    tile,
)
from ._shaping import (
    broadcast_arrays,
    broadcast_to,
    expand_dims,
    matrix_transpose,
    moveaxis,
    ndim,
    permute_dims,
    ravel,
    reshape,
    shape,
    size,
    squeeze,
    swapaxes,
    transpose,
)
from ._stopping import (
    stop_gradient,
    unbroadcast,
)
from ._types import (
    astype,
    result_type,
)

newaxis = None

# dtypes as every function here takes them; they are no functions, for np.float32(x)
# would make a plain number of a framework's array.
bool = _np.dtype("bool")
uint8, uint16, uint32, uint64 = map(_np.dtype, ("uint8", "uint16", "uint32", "uint64"))
int8, int16, int32, int64 = map(_np.dtype, ("int8", "int16", "int32", "int64"))
float16, float32, float64 = map(_np.dtype, ("float16", "float32", "float64"))
complex64, complex128 = map(_np.dtype, ("complex64", "complex128"))

__all__ = [
    "abs", "absolute", "acos", "acosh", "add", "all", "amax", "amin", "angle", "any",
    "arange", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh",
    "argmax", "argmin", "argsort", "around", "array", "asarray", "asin", "asinh",
    "astype", "atan", "atan2", "atanh", "atleast_1d", "atleast_2d", "atleast_3d",
    "average", "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_not",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "bool", "broadcast_arrays",
    "broadcast_to", "cbrt", "ceil", "clip", "complex64", "complex128", "concat",
    "concatenate", "conj", "conjugate", "copysign", "cos", "cosh", "count_nonzero",
    "cross", "cumprod", "cumsum", "deg2rad", "degrees", "diag", "diagonal", "diff",
    "divide", "dot", "e", "einsum", "empty_like", "equal", "exp", "exp2", "expand_dims",
    "expm1", "eye", "finfo", "flip", "float16", "float32", "float64", "floor",
    "floor_divide", "fmax", "fmin", "fmod", "full", "full_like", "greater",
    "greater_equal", "heaviside", "hypot", "imag", "inf", "inner", "int8", "int16",
    "int32", "int64", "invert", "isclose", "isfinite", "isinf", "isnan", "kron",
    "left_shift", "less", "less_equal", "linalg", "linspace", "log", "log1p", "log2",
    "log10", "logaddexp", "logaddexp2", "logical_and", "logical_not", "logical_or",
    "logical_xor", "matmul", "matrix_transpose", "max", "maximum", "mean", "median",
    "meshgrid", "min", "minimum", "mod", "moveaxis", "multiply", "nan", "nan_to_num",
    "nanmean", "nanprod", "nansum", "ndim", "negative", "newaxis", "not_equal", "ones",
    "ones_like", "outer", "pad", "permute_dims", "pi", "positive", "pow", "power",
    "prod", "ptp", "rad2deg", "radians", "ravel", "real", "reciprocal", "remainder",
    "repeat", "reshape", "result_type", "right_shift", "rint", "roll", "round",
    "searchsorted", "shape", "sign", "signbit", "sin", "sinc", "sinh", "size", "sort",
    "special", "split", "sqrt", "square", "squeeze", "stack", "std", "stop_gradient",
    "subtract", "sum", "swapaxes", "take", "take_along_axis", "tan", "tanh",
    "tensordot", "tile", "trace", "transpose", "tril", "triu", "true_divide", "trunc",
    "uint8", "uint16", "uint32", "uint64", "unbroadcast", "unstack", "vander", "var",
    "vecdot", "where", "zeros", "zeros_like",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    raise _missing(name)


def __dir__() -> list[str]:
    return __all__
