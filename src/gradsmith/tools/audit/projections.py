"""The failing regions of functions of several arguments, or of vectors, in words.

What fails is told by one number of a point: an argument, its size, a greatest element.
The number is taken by which those that fail are best told from the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .formats import Format
from .judged import LOST, NAMES, NAN, OVERFLOW, UNDERFLOW, Judged
from .model import Region
from .phrases import percent, said

CLEAR = 0.9  # the share of points beyond a bound that fail, to name it


@dataclass(frozen=True)
class Told:
    """A region, its points and the worst of them."""

    region: Region
    points: Any
    worst: int


def features(names: Sequence[str], xs: Sequence[Any]) -> dict[str, Any]:
    """Numbers by which points can be told apart."""
    found: dict[str, Any] = {}
    for name, x in zip(names, xs, strict=True):
        x = x.astype(np.float64)
        if x.ndim == 1:
            found[name], found[f"|{name}|"] = x, np.abs(x)
            continue
        x = x.reshape(len(x), -1)
        found[f"max({name})"], found[f"min({name})"] = x.max(1), x.min(1)
        found[f"max(|{name}|)"] = np.abs(x).max(1)
        found[f"max({name}) - min({name})"] = np.ptp(x, axis=1)
    numbers = [(n, x.astype(np.float64)) for n, x in zip(names, xs, strict=True)
               if x.ndim == 1]  # fmt: skip
    if len(numbers) == 2:
        (a, x1), (b, x2) = numbers
        with np.errstate(all="ignore"):
            found[f"max(|{a}|, |{b}|)"] = np.maximum(np.abs(x1), np.abs(x2))
            found[f"{a} - {b}"] = x1 - x2
            found[f"|{a}|/|{b}|"] = np.abs(x1) / np.abs(x2)
    return found


def regions(
    names: Sequence[str], xs: Sequence[Any], errors: Judged, form: Format, what: str
) -> list[Told]:
    """What fails where."""
    known = np.flatnonzero(errors.known)
    if not (errors.kind[known] > 0).any():
        return []
    told = {name: x[known] for name, x in features(names, xs).items()}
    found = []
    for kind in (NAN, OVERFLOW, UNDERFLOW, LOST):
        bad = errors.kind[known] == kind
        if bad.any():
            where, clear = _where(told, bad)
            found.append(_region(kind, where, clear, errors, known[bad], form, what,
                                 len(known)))  # fmt: skip
    return found


def _region(
    kind: int, where: str, clear: bool, errors: Judged, at: Any, form: Format,
    what: str, judged: int,
) -> Told:  # fmt: skip
    some = errors.at(at)
    share = len(at) / judged
    text = f"{what} {said(NAMES[kind], some, form)}"
    often = f"{percent(share)} of the inputs"
    if where and clear:
        text += f" for {where}, {often}"
    elif where:
        text += f" for {often}, all of them with {where}"
    else:
        text += f" here and there, for {often}"
    worst = int(at[np.argmax(some.ulp)])
    bits = float(some.bits.max())
    region = Region(
        NAMES[kind], where or "here and there", text, None, None, len(at), share,
        bits,
    )  # fmt: skip
    return Told(region, at, worst)


def _where(told: dict[str, Any], bad: Any) -> tuple[str, bool]:
    """The bound that tells best, and whether nearly all beyond it fail."""
    best, words = 0.0, ""
    base = bad.mean()
    if base >= CLEAR:
        return "nearly all inputs", True
    for name, x in told.items():
        if np.isnan(x).any():
            continue
        values = x[bad]
        if np.ptp(values) == 0 and (len(values) > 1 or values[0] == 0):
            bounds = [(x == values[0], f"{name} = {values[0]:.6g}")]
        else:
            low, high = values.min(), values.max()
            bounds = [(x >= low, f"{name} >= {low:.3g}"),
                      (x <= high, f"{name} <= {high:.3g}")]  # fmt: skip
        for inside, text in bounds:
            score = bad.sum() / inside.sum()
            if score > best + 0.02:
                best, words = score, text
    if best >= CLEAR:
        return words, True
    return (words, False) if best > max(2 * base, 0.1) else ("", False)
