"""Enclosed coefficients as a polynomial in double precision, and what it is off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..formats import Format

SPARE = 11  # remainders are at most 2**-11 units in the last place
ROOT = 46  # or 2**-46 of the greatest value, where there is a root
U = 2.0**-53  # a rounding error


@dataclass
class Enclosed:
    """Coefficients at midpoints, what they are off, and bounds of those all over."""

    mid: Any
    off: Any
    wide: Any
    least: Any  # the least size that the function has


_float: Any = np.frompyfunc(float, 1, 1)
_radius: Any = np.frompyfunc(lambda x: float(x.rad()), 1, 1)
_most: Any = np.frompyfunc(lambda x: float(x.abs_upper()), 1, 1)
_least: Any = np.frompyfunc(lambda x: float(x.abs_lower()), 1, 1)


def enclosed(mid: Any, wide: Any) -> Enclosed:
    c = _float(mid).astype(float)
    off = _radius(mid).astype(float) + U * np.abs(c) + 2.0**-1070
    most = _most(wide).astype(float) * (1 + 4 * U) + 2.0**-1070
    least = _least(wide[:, 0]).astype(float) * (1 - 4 * U)
    return Enclosed(c, off, most, least)


def judged(found: Enclosed, form: Format) -> list[Any]:
    """Of each interval: coefficients and radius; "bits" or None if they don't do."""
    top, tiny = 2.0**form.most, 2.0 ** (form.least - SPARE - 2)
    judged: list[Any] = []
    for c, off, wide, least in zip(
        found.mid, found.off, found.wide, found.least, strict=True
    ):
        if least >= top:
            judged.append(([np.copysign(top, c[0])], 0.0))
        elif wide[0] <= tiny:
            judged.append(([0.0], wide[0]))
        else:
            judged.append(polynomial(c, off, wide, form))
    return judged


def polynomial(c: Any, off: Any, wide: Any, form: Format) -> Any:
    if not (np.isfinite(c).all() and np.isfinite(wide[0])):
        return None
    for d in range(len(c) - 1):
        size = np.abs(c[: d + 1])
        rest = wide[d + 1]
        most = size.sum() + rest
        least = max(2 * size[0] - most, 0.0)
        bound = _tolerance(least, most, form)
        if not rest <= bound:
            continue
        # Horner's rule: 2k + 1 roundings of the k-th term, and one of its coefficient
        rounding = (size * (2 * np.arange(d + 1) + 2)).sum() * U * 1.01
        rad = float(rest + off[: d + 1].sum() + rounding) * (1 + 8 * U)
        if off[: d + 1].sum() > 2 * bound:
            return "bits"
        return [float(a) for a in c[: d + 1][::-1]], rad
    return None


def _tolerance(least: float, most: float, form: Format) -> float:
    """What a remainder may be, from the least and the greatest size of a function."""
    low = 2.0 ** (form.least - SPARE)
    if least == 0:
        return max(low, most * 2.0**-ROOT)
    unit = np.frexp(least)[1] - form.digits
    return max(low, 2.0 ** (float(unit) - SPARE))
