"""How far a result is from the truth: in units in the last place, and in bits.

The unit is the distance between the format's numbers around the true value. Infinity
counts as the number that would come after the largest, so that an overflow has a size,
too. Bits are log2(1 + n) of the n numbers that the result is away from the nearest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .formats import Format
from .truth import DECIDED, KINK, Truth


@dataclass
class Errors:
    """Errors in ULP (NaN where nothing is known), their bounds, and in bits."""

    ulp: Any
    slack: Any  # the true error is at most so much more
    bits: Any

    @property
    def judged(self) -> Any:
        return ~np.isnan(self.ulp)


def errors(results: Any, truth: Truth, form: Format, *, size: Any = None) -> Errors:
    """Compare results of a format with certified numbers.

    A NaN where a number is true is infinitely far off. Where the true number may be
    anything in a ball (a kink), the error is the distance from that ball. With `size`
    the unit is that around the larger of the true value and this.
    """
    larger = size
    results, truth = np.asarray(results), _within_reach(truth, form)
    known = (truth.status == DECIDED) | (truth.status == KINK)
    got = results.astype(np.float64)
    top = np.ldexp(1.0, np.minimum(form.most - truth.scale, 1023))
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        size = np.clip(np.abs(truth.hi), 0, top)
        hi = np.copysign(size, truth.hi)
        lo = np.where(size < top, truth.lo, 0)
        off = np.where(
            np.isinf(got), np.copysign(top, got), np.ldexp(got, -truth.scale)
        )
        around = size if larger is None else np.maximum(
            size, np.minimum(np.ldexp(larger, -truth.scale), top)
        )  # fmt: skip
        unit = form.ulp_exponent(around, truth.scale)
        far = np.abs((off - hi) - lo)
        rad = np.where(size < top, truth.rad, 0)
        ulp = np.ldexp(np.where(truth.status == KINK, far - rad, far), -unit)
        slack = np.where(truth.status == KINK, 0, np.ldexp(rad, -unit))
    ulp = np.where(np.isnan(got), np.inf, np.maximum(ulp, 0))
    ulp = np.where(known, ulp, np.nan)
    bits = _bits(results, truth, ulp, form)
    if larger is not None:
        bits = np.where(np.isfinite(ulp), np.minimum(bits, np.log2(1 + ulp)), bits)
    return Errors(ulp, slack, bits)


def _within_reach(truth: Truth, form: Format) -> Truth:
    """What is far beyond all numbers of the format as infinity, far below as 0."""
    huge, tiny = truth.scale > form.most + 99, truth.scale < form.least - 99
    if not (huge.any() or tiny.any()):
        return truth
    hi = np.where(huge, np.copysign(np.inf, truth.hi), np.where(tiny, 0, truth.hi))
    near = ~(huge | tiny)
    lo, rad = np.where(near, truth.lo, 0), np.where(near, truth.rad, 0)
    return Truth(hi, lo, rad, np.where(near, truth.scale, 0), truth.status)


def _bits(results: Any, truth: Truth, ulp: Any, form: Format) -> Any:
    with np.errstate(over="ignore", under="ignore"):
        nearest = form.rounded(np.ldexp(truth.hi, truth.scale))
    apart = np.abs(
        form.codes(results).astype(float) - form.codes(nearest).astype(float)
    )
    bits = np.log2(1 + np.where(truth.status == KINK, np.minimum(apart, ulp), apart))
    bits = np.where(np.isnan(results.astype(np.float64)), float(form.bits), bits)
    return np.where(np.isnan(ulp), np.nan, bits)
