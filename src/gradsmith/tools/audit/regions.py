"""The failing regions, in words.

Those of one number are ranges of its numbers in order, with exact bounds. Of several
arguments, or of vectors, they are told by one feature of a point: an argument, its
size, a greatest element. The feature is taken by which the points that fail are best
told from the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...report.figures import percent
from . import phrases
from .errors import LOST, NAMES, NAN, OVERFLOW, UNDERFLOW, Errors
from .formats import Format
from .model import Region
from .ranges import Range, is_symmetric, large, ranges, refined

KINDS = (NAN, OVERFLOW, UNDERFLOW, LOST)
SOME = 64  # points of a region that are examined
FEW = 8  # points that are lost here and there make no range
MOST = 4  # ranges that are named, of a kind
CLEAR = 0.9  # the share of points beyond a bound that fail, to name it


@dataclass(frozen=True)
class Found:
    """A region, and which points are some of it, the worst first."""

    region: Region
    points: Any


def some_of(at: Any, ulp: Any, n: int) -> Any:
    """The worst of some points, and n others from all over them."""
    worst = at[np.argsort(-ulp, kind="stable")[: n // 8]]
    return np.concatenate([worst, at[np.linspace(0, len(at) - 1, n).astype(np.int64)]])


# Of one number


@dataclass(frozen=True)
class Line:
    """Points in order of their codes, with the errors of one quantity.

    `probe` gives the errors at other codes, `what` is "value" or "gradient". If they
    are folded, codes are those of sizes: negative numbers fail like positive ones.
    """

    codes: Any
    places: Any  # among all points
    errors: Errors
    probe: Callable[[Any], Errors]
    form: Format
    what: str
    name: str = "x"
    folded: bool = False

    def number(self, code: int) -> float:
        return float(self.form.numbers([code])[0])

    @property
    def binade(self) -> int:
        """How many codes there are between two powers of 2."""
        return 1 << (self.form.digits - 1)

    def fold(self) -> Line:
        sizes = np.abs(self.codes)
        order = np.argsort(sizes, kind="stable")
        return replace(
            self, codes=sizes[order], places=self.places[order],
            errors=self.errors.at(order), folded=True,
        )  # fmt: skip

    def found(
        self, kind: str, where: str, text: str, ends: tuple[float, float], at: Any
    ) -> Found:
        errors, (low, high) = self.errors.at(at), ends
        region = Region(
            kind, where, text, -high if self.folded else low, high, len(at),
            len(at) / len(self.codes), float(errors.bits.max()),
        )  # fmt: skip
        return Found(region, self.places[some_of(at, errors.ulp, SOME)])


def on_a_line(
    x: Any, errors: Errors, probe: Any, form: Format, what: str, name: str
) -> list[Found]:
    """What fails where, of one number: NaN and infinities first, then what is lost."""
    at, codes = np.flatnonzero(errors.known), form.codes(x)
    at = at[np.argsort(codes[at], kind="stable")]
    line = Line(codes[at], at, errors.at(at), probe, form, what, name)
    if not (line.errors.kind > 0).any():
        return []
    line = _without_single_zeros(line)
    masks = {kind: line.errors.kind == kind for kind in KINDS}
    return [
        found
        for kind, bad in masks.items()
        if bad.any()
        for found in _of_kind(line, kind, bad)
    ]


def _without_single_zeros(line: Line) -> Line:
    """Some zeros among results that are far off count as such; ranges of them stay."""
    kind = line.errors.kind.copy()
    bad = kind == UNDERFLOW
    for one in ranges(line.codes, bad):
        near = kind[max(one.points[0] - 1, 0) : one.points[-1] + 2]
        if len(one.points) < max(FEW, bad.sum() / 5) and (near == LOST).any():
            kind[one.points] = LOST
    return replace(line, errors=replace(line.errors, kind=kind))


def _of_kind(line: Line, kind: int, bad: Any) -> list[Found]:
    if is_symmetric(line.codes, bad, line.binade):
        line = line.fold()
        bad = line.errors.kind == kind

    def fails(codes: Any) -> Any:
        found = line.probe(codes).kind
        return found >= UNDERFLOW if kind == LOST else found == kind

    named = every = ranges(line.codes, bad)
    if kind == LOST:
        named = large(every, line.codes, bad, FEW, line.binade)
    named = sorted(named, key=lambda r: -len(r.points))[:MOST]
    named.sort(key=lambda r: r.low)
    found = [_named(line, kind, _exact(line, r, fails)) for r in named]
    rest = np.setdiff1d(np.flatnonzero(bad), np.concatenate([
        *[r.points for r in named], np.empty(0, np.int64)
    ]))  # fmt: skip
    return [*found, _scattered(line, kind, rest)] if len(rest) else found


def _exact(line: Line, one: Range, fails: Any) -> Range:
    one = refined(one, fails)
    if not line.folded or not one.sharp:
        return one
    inside = [code for code in (one.low, one.high) if code]
    outside = [code for code in (one.before, one.after) if code]
    says = fails(-np.asarray([*inside, *outside], np.int64))
    alike = says[: len(inside)].all() and not says[len(inside) :].any()
    return replace(one, sharp=bool(alike))


def _named(line: Line, kind: int, one: Range) -> Found:
    """A range, by its bounds."""
    errors = line.errors.at(one.points)
    single = one.low == one.high
    name = "infinite" if kind == OVERFLOW and single else NAMES[kind]
    where = phrases.bounds(line, one)
    text = phrases.sentence(line.what, name, errors, line.form, where)
    ends = line.number(one.low), line.number(one.high)
    return line.found(name, where, text, ends, one.points)


def _scattered(line: Line, kind: int, at: Any) -> Found:
    """Points that fail here and there, as one region."""
    x = line.form.numbers(line.codes[at]).astype(np.float64)
    signed = line.folded or (x.min() < 0 < x.max())
    where = phrases.between(f"|{line.name}|" if signed else line.name,
                            np.abs(x) if signed else x)  # fmt: skip
    said = phrases.said(NAMES[kind], line.errors.at(at), line.form)
    often = f"for {percent(len(at) / len(line.codes))} of the inputs"
    text = f"{line.what} {said} here and there, {often}, with {where}"
    return line.found(
        NAMES[kind], where, text, (float(x.min()), float(x.max())), at
    )  # fmt: skip


# Of several arguments, or of vectors


def by_features(
    names: Sequence[str], xs: Sequence[Any], errors: Errors, form: Format, what: str
) -> list[Found]:
    """What fails where, by the feature of the points that tells best."""
    known = np.flatnonzero(errors.known)
    kinds = errors.kind[known]
    if not (kinds > 0).any():
        return []
    told = {name: x[known] for name, x in features(names, xs).items()}
    found = []
    for kind in KINDS:
        bad = kinds == kind
        if bad.any():
            at, some = known[bad], errors.at(known[bad])
            where, text = _where(told, bad)
            region = Region(
                NAMES[kind], where or "here and there",
                f"{what} {phrases.said(NAMES[kind], some, form)} {text}", None, None,
                len(at), len(at) / len(known), float(some.bits.max()),
            )  # fmt: skip
            found.append(Found(region, some_of(at, some.ulp, SOME // 4)))
    return found


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
    numbers = [name for name, x in zip(names, xs, strict=True) if x.ndim == 1]
    if len(numbers) == 2:
        a, b = numbers
        with np.errstate(all="ignore"):
            found[f"max(|{a}|, |{b}|)"] = np.maximum(found[f"|{a}|"], found[f"|{b}|"])
            found[f"{a} - {b}"] = found[a] - found[b]
            found[f"|{a}|/|{b}|"] = found[f"|{a}|"] / found[f"|{b}|"]
    return found


def _where(told: dict[str, Any], bad: Any) -> tuple[str, str]:
    """The bound that tells best, and how a sentence ends with it."""
    where, best = _best_bound(told, bad)
    often = f"{percent(bad.mean())} of the inputs"
    if best >= CLEAR:  # nearly all beyond it fail
        return where, f"for {where}, {often}"
    if best > max(2 * bad.mean(), 0.1):
        return where, f"for {often}, all of them with {where}"
    return "", f"here and there, for {often}"


def _best_bound(told: dict[str, Any], bad: Any) -> tuple[str, float]:
    """The bound beyond which most points fail, and their share."""
    if bad.mean() >= CLEAR:
        return "nearly all inputs", 1.0
    words, best = "", 0.0
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
                words, best = text, score
    return words, best
