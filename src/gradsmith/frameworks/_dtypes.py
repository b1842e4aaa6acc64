"""NumPy's promotion, for the arrays of every framework.

dtypes go by their NumPy names, so that bfloat16 needs no package. NumPy itself is asked
which dtypes it would compute in; nothing of its tables is repeated here. In promotion a
bfloat16 counts as NumPy's other 16-bit float, and comes back as bfloat16; the two
together give float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

# The dtype of an operand: its name, or the type of a Python number, which gives way to
# the dtypes of arrays.
Kind = str | type

NUMBERS = (int, float, complex)
_ZEROS: dict[Kind, Any] = {int: 0, float: 0.0, complex: 0j}


class OtherDtype:
    """A dtype that NumPy does not have, as far as the contract reads it."""

    def __init__(self, name: str, kind: str) -> None:
        self.name = name
        self.kind = kind

    def __repr__(self) -> str:
        return self.name


def name_of(dtype: Any) -> str:
    """The NumPy name of a dtype of any framework.

    >>> name_of(np.float32), name_of("i4"), name_of("bfloat16")
    ('float32', 'int32', 'bfloat16')
    """
    if isinstance(dtype, np.dtype):
        return dtype.name
    if isinstance(dtype, str):
        return dtype if dtype == "bfloat16" else np.dtype(dtype).name
    if isinstance(dtype, type):
        return np.dtype(dtype).name
    return dtype.name if hasattr(dtype, "name") else str(dtype).rpartition(".")[2]


def kind_of_value(x: Any) -> Kind:
    """The kind of an operand that is no array: a number, or a list of numbers."""
    return type(x) if type(x) in NUMBERS else np.asarray(x).dtype.name


@cache
def loop(ufunc: str, *kinds: Kind) -> tuple[str, ...]:
    """The dtypes that a ufunc converts operands of these kinds to, then its result's.

    >>> loop("divide", "int32", "float32"), loop("exp", "int8")
    (('float64', 'float64', 'float64'), ('float16', 'float16'))
    >>> loop("multiply", "float32", float), loop("abs", "complex64")
    (('float32', 'float32', 'float32'), ('complex64', 'float32'))
    """
    known, back = _without_bfloat16(kinds)
    if all(kind in _ZEROS for kind in known):  # numbers alone are NumPy's defaults
        known = [np.result_type(_ZEROS[kind]).name for kind in known]
    given = [np.dtype(kind) if isinstance(kind, str) else kind for kind in known]
    found: Any = getattr(np, ufunc).resolve_dtypes((*given, None))
    return tuple([back.get(dtype.name) or dtype.name for dtype in found])


@cache
def result_type(*kinds: Kind) -> str:
    """The dtype that all operands of these kinds go into.

    >>> result_type("float32", "int32"), result_type("int8", float)
    ('float64', 'float64')
    >>> result_type("bfloat16", "float32"), result_type("bfloat16", int)
    ('float32', 'bfloat16')
    """
    known, back = _without_bfloat16(kinds)
    name = np.result_type(
        *(_ZEROS[kind] if kind in _ZEROS else np.dtype(kind) for kind in known)
    ).name
    return back.get(name, name)


def _without_bfloat16(kinds: Sequence[Kind]) -> tuple[list[Kind], dict[str, str]]:
    """Kinds that NumPy knows, and which of its answers stand for others."""
    if "bfloat16" not in kinds:
        return list(kinds), {}
    if "float16" in kinds:
        return ["float32" if kind == "bfloat16" else kind for kind in kinds], {}
    known = ["float16" if kind == "bfloat16" else kind for kind in kinds]
    return known, {"float16": "bfloat16"}


def is_inexact(name: str) -> bool:
    """Whether numbers of this dtype have fractions; objects are taken to."""
    return name.startswith(("float", "bfloat", "complex", "object"))


_WHOLE = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_RANGES = {name: (int(np.iinfo(name).min), int(np.iinfo(name).max)) for name in _WHOLE}


def fits(number: int, name: str) -> bool:
    """Whether a dtype holds a whole number.

    >>> fits(255, "uint8"), fits(-1, "uint8")
    (True, False)
    """
    low, high = _RANGES.get(name, (float("-inf"), float("inf")))
    return low <= number <= high


def total_of(name: str) -> str:
    """The dtype in which NumPy adds up: whole numbers in 64 bits."""
    if name == "bool" or name.startswith("int"):
        return "int64"
    return "uint64" if name.startswith("uint") else name


def inexact_of(name: str) -> str:
    """The dtype of a mean, or of a linear equation's solution."""
    return name if is_inexact(name) else "float64"


def real_of(name: str) -> str:
    """The dtype of the parts of a complex number."""
    return {"complex64": "float32", "complex128": "float64"}.get(name, name)


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
