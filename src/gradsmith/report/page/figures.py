"""Figures in words, as a page shows them."""

from __future__ import annotations

import math
from typing import Any

from .scales import number

NONE = "\N{EN DASH}"  # where there is no figure


def ulps(x: Any) -> str:
    """An error in ULP, with as many digits as it is worth.

    >>> ulps(0.5012), ulps(1025.3), ulps(8388608.0), ulps("inf"), ulps(None)
    ('0.50', '1,025', '8.4·10⁶', '∞', '–')
    """
    x = number(x)
    if math.isnan(x):
        return NONE
    if math.isinf(x):
        return "∞"
    if x < 100:
        return f"{x:.2f}"
    return f"{x:,.0f}" if x < 1e5 else scientific(x)


def scientific(x: Any, digits: int = 1) -> str:
    """A number with its power of ten.

    >>> scientific(9e-12, 0), scientific(123456.0)
    ('9·10⁻¹²', '1.2·10⁵')
    """
    x = number(x)
    if not math.isfinite(x) or not x:
        return f"{x:g}"
    head, _, exponent = f"{x:.{digits}e}".partition("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{head}·10{raised}"


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


def percent(x: Any) -> str:
    x = number(x)
    return NONE if math.isnan(x) else "0 %" if x == 0 else f"{100 * x:.2g} %"


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


def figure(x: Any) -> str:
    """Two digits.

    >>> figure(0.12345), figure("inf"), figure(12.0)
    ('0.12', '∞', '12')
    """
    x = number(x)
    return "∞" if math.isinf(x) else NONE if math.isnan(x) else f"{x:.2g}"
