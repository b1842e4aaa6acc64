"""The failing regions of a function of one number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import phrases
from .formats import Format
from .judged import LOST, NAMES, NAN, OVERFLOW, UNDERFLOW, Judged
from .model import Region
from .ranges import Range, is_symmetric, large, ranges, refined


@dataclass(frozen=True)
class Found:
    """A region, and the codes of some of its points, the worst first."""

    region: Region
    codes: Any


SOME = 64  # of these
FEW = 8  # points that are lost here and there make no range
MOST = 4  # ranges that are named, of a kind


@dataclass(frozen=True)
class Points:
    """Points in order of their codes, with the errors of one quantity.

    `probe` gives the errors of other codes, `what` is "value" or "gradient". If they
    are folded, codes are those of sizes: negative numbers fail like positive ones.
    """

    codes: Any
    inputs: Any  # the codes with their signs
    errors: Judged
    probe: Callable[[Any], Judged]
    form: Format
    what: str
    name: str = "x"
    folded: bool = False

    def number(self, code: int) -> float:
        return float(self.form.numbers([code])[0])

    @property
    def judged(self) -> int:
        return len(self.codes)

    @property
    def binade(self) -> int:
        """How many codes there are between two powers of 2."""
        return 1 << (self.form.digits - 1)

    def fold(self) -> Points:
        sizes = np.abs(self.codes)
        order = np.argsort(sizes, kind="stable")
        return replace(
            self, codes=sizes[order], inputs=self.inputs[order],
            errors=self.errors.at(order), folded=True,
        )  # fmt: skip


def in_order(
    codes: Any, errors: Judged, probe: Any, form: Format, what: str, name: str
) -> Points:
    """The judged points, in order."""
    at = np.flatnonzero(errors.known)
    at = at[np.argsort(codes[at], kind="stable")]
    return Points(codes[at], codes[at], errors.at(at), probe, form, what, name)


def regions(points: Points) -> list[Found]:
    """What fails where: NaN and infinities first, then what is lost."""
    if not (points.errors.kind > 0).any():
        return []
    points = _without_single_zeros(points)
    found: list[Found] = []
    for kind in (NAN, OVERFLOW, UNDERFLOW, LOST):
        bad = points.errors.kind == kind
        if bad.any():
            found += _of_kind(points, kind, bad)
    return found


def _without_single_zeros(points: Points) -> Points:
    """Some zeros among results that are far off count as such; ranges of them stay."""
    kind = points.errors.kind.copy()
    bad = kind == UNDERFLOW
    for one in ranges(points.codes, bad):
        near = kind[max(one.points[0] - 1, 0) : one.points[-1] + 2]
        if len(one.points) < max(FEW, bad.sum() / 5) and (near == LOST).any():
            kind[one.points] = LOST
    return replace(points, errors=replace(points.errors, kind=kind))


def _of_kind(points: Points, kind: int, bad: Any) -> list[Found]:
    if is_symmetric(points.codes, bad, points.binade):
        points = points.fold()
        bad = points.errors.kind == kind

    def fails(codes: Any) -> Any:
        found = points.probe(codes).kind
        return found >= UNDERFLOW if kind == LOST else found == kind

    named = every = ranges(points.codes, bad)
    if kind == LOST:
        named = large(every, points.codes, bad, FEW, points.binade)
    named = sorted(named, key=lambda r: -len(r.points))[:MOST]
    named.sort(key=lambda r: r.low)
    exact = [_exact(points, r, fails) for r in named]
    found = [_region(points, kind, r) for r in exact]
    rest = np.setdiff1d(np.flatnonzero(bad), np.concatenate([
        *[r.points for r in named], np.empty(0, np.int64)
    ]))  # fmt: skip
    return [*found, _scattered(points, kind, rest)] if len(rest) else found


def _exact(points: Points, one: Range, fails: Any) -> Range:
    one = refined(one, fails)
    if not points.folded or not one.sharp:
        return one
    inside = [code for code in (one.low, one.high) if code]
    outside = [code for code in (one.before, one.after) if code]
    says = fails(-np.asarray([*inside, *outside], np.int64))
    alike = says[: len(inside)].all() and not says[len(inside) :].any()
    return replace(one, sharp=bool(alike))


def _region(points: Points, kind: int, one: Range) -> Found:
    errors = points.errors.at(one.points)
    single = one.low == one.high
    name = "infinite" if kind == OVERFLOW and single else NAMES[kind]
    where = phrases.bounds(points, one)
    text = phrases.sentence(points.what, name, errors, points.form, where)
    low, high = points.number(one.low), points.number(one.high)
    region = Region(
        name, where, text, -high if points.folded else low, high, len(one.points),
        len(one.points) / points.judged, float(errors.bits.max()),
    )  # fmt: skip
    return Found(region, _some(points, one.points))


def _some(points: Points, at: Any) -> Any:
    """The worst of some points, and others from all over them."""
    ulp = points.errors.ulp[at]
    worst = at[np.argsort(-ulp, kind="stable")[:8]]
    spread = at[np.linspace(0, len(at) - 1, SOME).astype(np.int64)]
    return points.inputs[np.concatenate([worst, spread])]


def _scattered(points: Points, kind: int, at: Any) -> Found:
    """Points that fail here and there, as one region."""
    errors = points.errors.at(at)
    share = len(at) / points.judged
    x = points.form.numbers(points.codes[at]).astype(np.float64)
    signed = points.folded or (x.min() < 0 < x.max())
    where = phrases.between(f"|{points.name}|" if signed else points.name,
                            np.abs(x) if signed else x)  # fmt: skip
    said = phrases.said(NAMES[kind], errors, points.form)
    often = f"for {phrases.percent(share)} of the inputs"
    text = f"{points.what} {said} here and there, {often}, with {where}"
    region = Region(
        NAMES[kind], where, text, -float(x.max()) if points.folded else float(x.min()),
        float(x.max()), len(at), share, float(errors.bits.max()),
    )  # fmt: skip
    return Found(region, _some(points, at))
