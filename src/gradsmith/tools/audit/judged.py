"""Results against the truth, point by point: how far off, and in which way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .formats import Format
from .model import LIMIT
from .truth import OUTSIDE, Truth
from .ulp import errors

FINE, NAN, OVERFLOW, UNDERFLOW, LOST = range(5)
NAMES = ("", "nan", "overflow", "underflow", "lost")


@dataclass(frozen=True)
class Judged:
    """The errors of some results; `kind` is how each fails, if it does.

    `ulp` is NaN where nothing is known. `true` is the true number, which may be beyond
    all of the format.
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

    def at(self, index: Any) -> Judged:
        return Judged(*[getattr(self, name)[index] for name in _FIELDS])


def declared(dx: Any, truth: Truth, form: Format) -> Any:
    """Where a gradient of the engine is 0, for the true one is larger than any number.

    That is its declared choice: see "an infinite slope" in its table of edges.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        true = np.ldexp(truth.hi, truth.scale)
    return (np.asarray(dx) == 0) & (np.abs(true) >= form.overflow)


_FIELDS = ("ulp", "slack", "bits", "kind", "status", "true")


def joined(parts: Sequence[Judged]) -> Judged:
    return Judged(
        *[np.concatenate([getattr(part, name) for part in parts]) for name in _FIELDS]
    )


def judge(
    results: Any, truth: Truth, form: Format, *, skip: Any = None, size: Any = None
) -> Judged:
    """Compare results of a format with certified numbers; not those to be skipped.

    With `size`, the unit is that of these sizes where they are larger than the numbers.
    """
    if skip is not None and np.any(skip):
        status = np.where(skip, OUTSIDE, truth.status)
        truth = Truth(truth.hi, truth.lo, truth.rad, truth.scale, status)
    found = errors(results, truth, form, size=size)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        true = np.ldexp(truth.hi, truth.scale)
    kind = _kinds(np.asarray(results).astype(np.float64), true, found.ulp)
    return Judged(found.ulp, found.slack, found.bits, kind, truth.status, true)


def _kinds(got: Any, true: Any, ulp: Any) -> Any:
    bad = ulp > LIMIT  # not where it is NaN
    kind = np.zeros(np.shape(ulp), np.uint8)
    if bad.any():
        kind[bad] = LOST
        kind[bad & (got == 0) & (true != 0)] = UNDERFLOW
        kind[bad & np.isinf(got)] = OVERFLOW
        kind[bad & np.isnan(got)] = NAN
    return kind
