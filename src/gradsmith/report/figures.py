"""Figures in words."""

from __future__ import annotations

import math
from typing import Any


def number(x: Any) -> float:
    """A number that may have been through JSON, where NaN and inf are words.

    >>> number("inf"), number(None), number(0.5)
    (inf, nan, 0.5)
    """
    return math.nan if x is None else float(x)


def ulps(x: Any) -> str:
    """An error in ULP, with as many digits as it is worth.

    >>> ulps(0.5012), ulps(1025.3), ulps(8388608.0), ulps("inf")
    ('0.50', '1,025', '8.4·10⁶', 'inf')
    """
    x = number(x)
    if x < 100 or math.isnan(x):
        return f"{x:.2f}"
    return rounded(x) if math.isfinite(x) else "inf"


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def rounded(x: float) -> str:
    """A large number: whole, or with a power of ten that people read.

    >>> rounded(250.0), rounded(12345.6), rounded(4.47e43)
    ('250', '12,346', '4.5·10⁴³')
    """
    if abs(x) < 1e5:
        return f"{x:,.0f}"
    digits, _, power = f"{x:.1e}".partition("e")
    return f"{digits}·10{str(int(power)).translate(_RAISED)}"


def short(x: float) -> str:
    """A number with two digits, and no exponent where it needs none.

    >>> short(123.4), short(0.018), short(6.1e-05), short(float("inf"))
    ('120', '0.018', '6.1e-05', 'inf')
    """
    return f"{float(f'{x:.2g}'):g}"


def percent(share: float) -> str:
    """A share with two digits; a large one as a factor.

    >>> percent(1), percent(0.0012), percent(2.5), percent(0), percent(0.97)
    ('100 %', '0.12 %', '250 %', '0 %', '97 %')
    >>> percent(0.00000003), percent(12.0), percent(3e9)
    ('under 0.001 %', '12 times', '3.0·10⁹ times')
    """
    if share >= 10:
        return f"{rounded(share)} times"
    if 0 < share < 1e-5:
        return "under 0.001 %"
    return f"{short(100 * share)} %"


def seconds(x: Any) -> str:
    """A time in a fitting unit.

    >>> seconds(0.000118), seconds(0.0021), seconds(1.25), seconds(75)
    ('118 µs', '2.1 ms', '1.2 s', '75 s')
    """
    x = number(x)
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if x >= size or unit == "µs":
            value = x / size
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    raise AssertionError


def times(rule: float, autodiff: float) -> str:
    """How the rule compares.

    >>> times(1.0, 2.5), times(2.0, 1.0), times(1.0, 1.04)
    ('2.5 times as fast', '2.0 times as slow', 'as fast')
    """
    ratio = autodiff / rule
    if 0.95 < ratio < 1.05:
        return "as fast"
    if ratio > 1:
        return f"{ratio:.1f} times as fast"
    return f"{1 / ratio:.1f} times as slow"


def plural(n: int, one: str, many: str | None = None) -> str:
    return f"{n:,} {one if n == 1 else many or one + 's'}"
