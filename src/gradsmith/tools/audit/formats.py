"""Floating-point formats: their numbers in order, as codes and as values.

The code of a number is its place on the line of all numbers of the format: 0 for zero,
1 for the smallest positive one, -1 for its negative. Two codes are as far apart as the
numbers between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.errors import GradsmithError


@dataclass(frozen=True)
class Format:
    """A binary format: `digits` of the mantissa, exponents, bits of all."""

    name: str
    bits: int
    digits: int  # with the leading one
    least: int  # the exponent of the smallest subnormal number
    most: int  # every finite number is below 2**most

    @property
    def dtype(self) -> Any:
        """NumPy's dtype; bfloat16's is from ml_dtypes."""
        if self.name != "bfloat16":
            return np.dtype(self.name)
        try:
            from ml_dtypes import bfloat16
        except ImportError as error:
            raise GradsmithError(
                "bfloat16 arrays of NumPy need ml_dtypes: pip install ml_dtypes"
            ) from error
        return np.dtype(bfloat16)

    @property
    def largest_code(self) -> int:
        """The code of the largest finite number."""
        return ((1 << (self.bits - 1)) - (1 << (self.digits - 1))) - 1

    @property
    def overflow(self) -> float:
        """From here on numbers are rounded to infinity."""
        return 2.0 ** (self.most - 1) * (2 - 2.0**-self.digits)

    @property
    def smallest_normal(self) -> float:
        return 2.0 ** (self.least + self.digits - 1)

    def codes(self, x: Any) -> Any:
        """The codes of numbers; both zeros have 0, infinities the ones beyond."""
        raw = np.asarray(x, self.dtype).view(f"u{self.bits // 8}")
        sign = raw >> (self.bits - 1)
        size = (raw & ((1 << (self.bits - 1)) - 1)).astype(np.int64)
        return np.where(sign == 1, -size, size)

    def numbers(self, codes: Any) -> Any:
        """The numbers of codes."""
        codes = np.asarray(codes, np.int64)
        raw = np.abs(codes).astype(np.uint64)
        raw |= (codes < 0).astype(np.uint64) << np.uint64(self.bits - 1)
        return raw.astype(f"u{self.bits // 8}").view(self.dtype)

    def rounded(self, x: Any) -> Any:
        """A float64 as the nearest number of the format."""
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(x, np.float64).astype(self.dtype)

    def ulp_exponent(self, x: Any, scale: Any = 0) -> Any:
        """The exponent of the unit in the last place of x * 2**scale, less `scale`.

        Above the largest number it is that of the largest.
        """
        _, exponent = np.frexp(np.asarray(x, np.float64))
        exponent = np.minimum(exponent, self.most - scale) - self.digits
        exponent = np.maximum(exponent, self.least - scale)
        return np.where(x == 0, self.least - scale, exponent)


FORMATS = {
    f.name: f
    for f in (
        Format("float16", 16, 11, -24, 16),
        Format("bfloat16", 16, 8, -133, 128),
        Format("float32", 32, 24, -149, 128),
        Format("float64", 64, 53, -1074, 1024),
    )
}


def format_of(dtype: Any) -> Format:
    """The format of a dtype, NumPy's or a framework's, or of its name."""
    name = dtype if isinstance(dtype, str) else _name_of(dtype)
    if name not in FORMATS:
        raise GradsmithError(
            f"dtype={name!r} can't be audited: it is one of {', '.join(FORMATS)}"
        )
    return FORMATS[name]


def _name_of(dtype: Any) -> str:
    try:
        return np.dtype(dtype).name
    except TypeError:  # dtypes of frameworks go by the same name
        return getattr(dtype, "name", None) or str(dtype).rpartition(".")[2]


def literal(x: Any, form: Format) -> str:
    """A number as short as its format reads it back exactly.

    >>> literal(np.float32(0.1), FORMATS["float32"])
    '0.1'
    >>> literal(float("nan"), FORMATS["float32"])
    "float('nan')"
    """
    if not np.isfinite(float(x)):
        return f"float('{float(x)}')"
    number = np.asarray(x, form.dtype)[()]
    return repr(float(str(number)))
