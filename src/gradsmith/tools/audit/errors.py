"""How far results are from the truth, point by point, and in which way they fail.

The unit in the last place (ULP) is the distance between the format's numbers around the
true value. Infinity counts as the number that would come after the largest, so that an
overflow has a size, too. Bits are log2(1 + n) of the n numbers that the result is away
from the nearest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from .certified.truth import DECIDED, KINK, OUTSIDE, UNDECIDED, Truth
from .formats import Format
from .model import LIMIT

FINE, NAN, OVERFLOW, UNDERFLOW, LOST = range(5)
NAMES = ("", "nan", "overflow", "underflow", "lost")


@dataclass(frozen=True)
class Errors:
    """The errors of some results.

    `ulp` is NaN where nothing is known; the true error is at most `slack` more. `kind`
    is how each result fails, if it does. `true` is the true number, which may be beyond
    all numbers of the format.
    """

    ulp: Any
    slack: Any
    bits: Any
    kind: Any
    status: Any
    true: Any

    @property
    def known(self) -> Any:
        return ~np.isnan(self.ulp)

    def at(self, index: Any) -> Errors:
        return Errors(*[part[index] for part in self._parts()])

    def by_rows(self) -> Errors:
        """The worst element of each row; a row is undecided if any element is."""
        if self.ulp.ndim == 1:
            return self
        n = len(self.ulp)
        ulp, status = self.ulp.reshape(n, -1), self.status.reshape(n, -1)
        worst = np.argmax(np.where(np.isnan(ulp), -1, ulp), axis=1)
        found = Errors(*[x.reshape(n, -1)[np.arange(n), worst] for x in self._parts()])
        rows = np.full(n, DECIDED, np.uint8)
        for each in (KINK, UNDECIDED):
            rows[(status == each).any(axis=1)] = each
        rows[(status == OUTSIDE).all(axis=1)] = OUTSIDE
        found.status[:] = rows
        return found

    def _parts(self) -> list[Any]:
        return [getattr(self, field.name) for field in fields(self)]


def joined(parts: Sequence[Errors]) -> Errors:
    columns = zip(*[part._parts() for part in parts], strict=True)
    return Errors(*map(np.concatenate, columns))


def errors_of(
    results: Any, truth: Truth, form: Format, *, skip: Any = None, size: Any = None
) -> Errors:
    """Compare results of a format with certified numbers; not those to be skipped.

    A NaN where a number is true is infinitely far off. Where the true number may be
    anything in a ball (a kink), the error is the distance from that ball. With `size`
    the unit is that around the larger of the true value and this.
    """
    if skip is not None and np.any(skip):
        truth = truth.having(np.where(skip, OUTSIDE, truth.status))
    results, near = np.asarray(results), _within_reach(truth, form)
    ulp, slack = _ulp(results, near, form, size)
    bits = _bits(results, near, ulp, form)
    if size is not None:
        bits = np.where(np.isfinite(ulp), np.minimum(bits, np.log2(1 + ulp)), bits)
    true = truth.number
    kind = _kinds(results.astype(np.float64), true, ulp)
    return Errors(ulp, slack, bits, kind, truth.status, true)


def _ulp(results: Any, truth: Truth, form: Format, larger: Any) -> tuple[Any, Any]:
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
    return np.where(known, ulp, np.nan), slack


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
    nearest = form.rounded(truth.number)
    apart = np.abs(
        form.codes(results).astype(float) - form.codes(nearest).astype(float)
    )
    bits = np.log2(1 + np.where(truth.status == KINK, np.minimum(apart, ulp), apart))
    bits = np.where(np.isnan(results.astype(np.float64)), float(form.bits), bits)
    return np.where(np.isnan(ulp), np.nan, bits)


def _kinds(got: Any, true: Any, ulp: Any) -> Any:
    bad = ulp > LIMIT  # not where it is NaN
    kind = np.zeros(np.shape(ulp), np.uint8)
    if bad.any():
        kind[bad] = LOST
        kind[bad & (got == 0) & (true != 0)] = UNDERFLOW
        kind[bad & np.isinf(got)] = OVERFLOW
        kind[bad & np.isnan(got)] = NAN
    return kind
