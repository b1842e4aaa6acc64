"""The words for what fails, and where."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...report.figures import ulps
from .errors import Errors
from .formats import Format, literal
from .ranges import Range


def sentence(what: str, kind: str, errors: Errors, form: Format, where: str) -> str:
    """For example "gradient is NaN for x = 0"."""
    at = where if where == "everywhere" else f"for {where}"
    text = f"{what} {said(kind, errors, form)} {at}"
    if kind == "underflow":
        text += f", where the true value is {_up_to(errors, form)}"
    return text


def said(kind: str, errors: Errors, form: Format) -> str:
    """How it fails, for a sentence whose subject is the value or the gradient."""
    if kind == "lost":
        bits, ulp = float(errors.bits.max()), float(errors.ulp.max())
        if bits < 4:
            return f"is up to {ulps(ulp)} ULP off"
        up_to = "up to " * bool(np.ptp(errors.bits) > 2)
        return f"loses {up_to}{bits:.0f} bits"
    if kind == "underflow" and np.abs(errors.true).max() > 4 * 2.0**-form.digits:
        return "is 0"
    return {
        "nan": "is NaN",
        "overflow": "overflows to inf",
        "infinite": "is inf",
        "underflow": "underflows to 0",
    }[kind]


def _up_to(errors: Errors, form: Format) -> str:
    size = np.abs(errors.true)
    most, least = float(size.max()), float(size.min())
    if least >= form.overflow:
        return f"larger than any {form.name}"
    return f"{most:.3g}" if least > most / 2 else f"up to {most:.3g}"


def bounds(points: Any, one: Range) -> str:
    """A range in words: "x > 88.7228", "|x| < 0.00012", "x = 0"."""
    x = f"|{points.name}|" if points.folded and one.high else points.name
    if one.low == one.high:
        exact = literal(points.form.numbers([one.low])[0], points.form)
        return f"{x} = {exact.removesuffix('.0')}"
    before = one.before
    if points.folded and before is not None and before < points.binade:
        before = None  # from the subnormal numbers on
    low, high = _shown(points, before), _shown(points, one.after)
    below, above = distinct(low, high, 6 if one.sharp else 2)
    if high is None:
        return "everywhere" if low is None else f"{x} > {below}"
    return f"{x} < {above}" if low is None else f"{below} < {x} < {above}"


def _shown(points: Any, code: int | None) -> float | None:
    """The number of a bound; some subnormal numbers from 0 on it is 0."""
    if code is None:
        return None
    return points.number(code) if abs(code) > 8 else 0.0


def distinct(low: Any, high: Any, digits: int) -> tuple[str, str]:
    """Two numbers with so many digits, or more if they would look the same.

    >>> distinct(100.0, 350.0, 2), distinct(1.012, 1.014, 2), distinct(None, 0.5, 2)
    (('100', '350'), ('1.012', '1.014'), ('', '0.5'))
    """
    for n in range(digits, 18):
        shown = tuple(
            "" if x is None else f"{float(f'{x:.{n}g}'):.{max(n, 6)}g}"
            for x in (low, high)
        )
        if shown[0] != shown[1] or low == high:
            return shown  # type: ignore[return-value]
    return str(low), str(high)


def between(name: str, x: Any) -> str:
    """Where some inputs lie."""
    if x.min() == x.max():
        return f"{name} = {x.min():.6g}"
    low, high = distinct(x.min(), x.max(), 2)
    return f"{low} <= {name} <= {high}"
