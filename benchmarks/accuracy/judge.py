"""Values and gradients against the certified ones, point by point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gradsmith.tools.audit.certified.certify import certify
from gradsmith.tools.audit.certified.truth import UNDECIDED, Truth
from gradsmith.tools.audit.errors import errors_of
from gradsmith.tools.audit.formats import Format, literal

CHUNK = 2048
LIMIT = 4.0  # ULP


@dataclass(frozen=True)
class Figure:
    """How far results are from the truth: the worst, the share beyond 4 ULP, where.

    `normal_ulp` and `normal_beyond` are of those points alone whose inputs and true
    result are no subnormal numbers, which some count as 0.
    """

    max_ulp: float
    beyond: float
    worst: str
    judged: int
    undecided: int = 0
    normal_ulp: float = float("nan")
    normal_beyond: float = float("nan")


@dataclass(frozen=True)
class Truths:
    """The true values and gradients of points, which serve all contenders."""

    xs: list[Any]
    dy: Any
    value: Truth
    gradients: list[Truth]


def truths(
    reference: Callable[..., Any], xs: Sequence[Any], form: Format, dy: Any = None
) -> Truths:
    parts = []
    for i in range(0, len(xs[0]), CHUNK):
        some = [x[i : i + CHUNK].astype(np.float64) for x in xs]
        upstream = None if dy is None else dy[i : i + CHUNK]
        with np.errstate(all="ignore"):
            parts.append(certify(reference, some, form, dy=upstream))
    gradients = [_joined([p[1][k] for p in parts]) for k in range(len(xs))]
    return Truths(list(xs), dy, _joined([p[0] for p in parts]), gradients)


def _joined(parts: Sequence[Truth]) -> Truth:
    names = ("hi", "lo", "rad", "scale", "status")
    return Truth(*[np.concatenate([getattr(p, n) for p in parts]) for n in names])


def figure(
    results: Any, truth: Truth, xs: Sequence[Any], form: Format, *, without: Any = False
) -> Figure:
    """The errors of results, without some points and those where the truth overflows.

    There the engine's gradient is 0 by declaration and the frameworks' is infinite.
    """
    with np.errstate(all="ignore"):
        ulp = errors_of(form.rounded(results), truth, form).ulp
    ulp = np.where(overflows(truth, form) | without, np.nan, ulp)
    undecided = int(np.sum(truth.status == UNDECIDED))
    if np.isnan(ulp).all():
        return Figure(np.nan, np.nan, "", 0, undecided)
    at = int(np.nanargmax(ulp)) // (ulp.size // len(ulp))
    worst = ", ".join(_shown(x[at], form) for x in xs)
    judged = int(np.sum(~np.isnan(ulp)))
    normal = np.where(_is_normal(truth, xs, form), ulp, np.nan)
    return Figure(*_summary(ulp), worst, judged, undecided, *_summary(normal))


def _summary(ulp: Any) -> tuple[float, float]:
    ulp = ulp[~np.isnan(ulp)]
    if not ulp.size:
        return np.nan, np.nan
    return float(ulp.max()), float((ulp > LIMIT).mean())


def _is_normal(truth: Truth, xs: Sequence[Any], form: Format) -> Any:
    least = np.ldexp(1.0, form.least + form.digits - 1)
    with np.errstate(all="ignore"):
        size = np.abs(np.ldexp(truth.hi, truth.scale))
        normal = (size >= least) | (truth.hi == 0)
        for x in xs:
            x = np.abs(x.astype(np.float64))
            fine = (x >= least) | (x == 0)
            normal &= fine if fine.ndim == normal.ndim else fine.all(axis=-1)
    return normal


def overflows(truth: Truth, form: Format) -> Any:
    """Which numbers are rounded to infinity: half a unit above the largest and more."""
    with np.errstate(all="ignore"):
        size = np.abs(np.ldexp(truth.hi, truth.scale))
    return size >= np.ldexp(2.0 - 2.0**-form.digits, form.most - 1)


def _shown(x: Any, form: Format) -> str:
    if np.ndim(x) == 0:
        return literal(x, form)
    return "[" + ", ".join(literal(part, form) for part in x) + "]"


def worse(figures: Sequence[Figure]) -> Figure:
    """The worst of the gradients of several arguments."""
    seen = [f for f in figures if f.judged]
    if not seen:
        return figures[0]
    worst = max(seen, key=lambda f: f.max_ulp)
    return Figure(
        worst.max_ulp,
        float(np.mean([f.beyond for f in seen])),
        worst.worst,
        sum(f.judged for f in seen),
        max(f.undecided for f in figures),
        max(f.normal_ulp for f in seen),
        float(np.mean([f.normal_beyond for f in seen])),
    )
