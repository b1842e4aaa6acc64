"""The errors of many points in few numbers, which can be merged in any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import fsum
from typing import Any

import numpy as np

from .certified.truth import KINK, OUTSIDE, UNDECIDED
from .errors import Errors
from .model import LIMIT, Accuracy, Curve

WORST = 5  # inputs that are shown
BINS = 400  # of the curve


@dataclass(frozen=True)
class Worst:
    """An input, by its code (or number), and how far its result is off."""

    ulp: float
    slack: float
    code: int
    literal: str

    @property
    def order(self) -> tuple[float, int, int]:
        """The worst come first, and of those the simplest."""
        return (-self.ulp, abs(self.code), self.code)


@dataclass(frozen=True)
class Bins:
    """The sums of adjacent bins of the curve, from the bin `start` on."""

    start: int
    points: Any
    sum_ulp: Any
    max_ulp: Any
    worst: Any  # the code of each bin's worst input


@dataclass(frozen=True)
class Tally:
    """What is known of the errors of some points. All of it adds up, or is a maximum.

    `kinds` are the numbers of points that fail, by the way they do (see `judged`).
    """

    judged: int
    undecided: int
    kinks: int
    outside: int
    beyond: int
    sum_ulp: float
    sum_bits: float
    kinds: tuple[int, ...]
    worst: tuple[Worst, ...]
    bins: Bins | None = None

    def as_dict(self) -> dict[str, Any]:
        """As JSON knows it; it writes infinities, too."""
        row = asdict(self)
        if self.bins is not None:
            row["bins"] = {
                name: value.tolist() if isinstance(value, np.ndarray) else value
                for name, value in row["bins"].items()
            }
        return row

    @classmethod
    def from_dict(cls, row: dict[str, Any]) -> Tally:
        bins = row["bins"]
        if bins is not None:
            arrays = {name: np.array(v) for name, v in bins.items() if name != "start"}
            bins = Bins(start=bins["start"], **arrays)
        worst = tuple(Worst(**one) for one in row["worst"])
        return cls(
            **{**row, "kinds": tuple(row["kinds"]), "worst": worst, "bins": bins}
        )

    def accuracy(self, input_of: Callable[[Any], Any] | None = None) -> Accuracy:
        """The figures; `input_of` makes inputs of the codes of the curve."""
        n, none = self.judged, float("nan")
        curve = None
        if self.bins is not None and input_of is not None:
            curve = _curve(self.bins, input_of)
        return Accuracy(
            max_ulp=self.worst[0].ulp if n else none,
            slack=self.worst[0].slack if n else none,
            mean_ulp=self.sum_ulp / n if n else none,
            mean_bits=self.sum_bits / n if n else none,
            beyond=self.beyond / n if n else none,
            worst_inputs=tuple(worst.literal for worst in self.worst),
            judged=n,
            undecided=self.undecided,
            kinks=self.kinks,
            outside=self.outside,
            curve=curve,
        )


NOTHING = Tally(0, 0, 0, 0, 0, 0.0, 0.0, (0,) * 5, ())


def tally(
    errors: Errors,
    codes: Any,
    literal: Callable[[int], str],
    ends: tuple[int, int] | None = None,
) -> Tally:
    """The tally of some points. `literal(i)` is the input of the i-th of them.

    With `ends`, the first and the last code of all points, they are put in bins.
    """
    ulp, known = errors.ulp, errors.known
    at = np.flatnonzero(known)
    first = at[np.lexsort((codes[at], np.abs(codes[at]), -ulp[at]))[:WORST]]
    worst = [
        Worst(float(ulp[i]), float(errors.slack[i]), int(codes[i]), literal(int(i)))
        for i in first
    ]
    return Tally(
        judged=len(at),
        undecided=_count(errors, UNDECIDED),
        kinks=_count(errors, KINK),
        outside=_count(errors, OUTSIDE),
        beyond=int(np.sum(ulp > LIMIT)),
        sum_ulp=float(np.sum(ulp[at])),
        sum_bits=float(np.sum(errors.bits[at])),
        kinds=tuple(map(int, np.bincount(errors.kind, minlength=5))),
        worst=tuple(worst),
        bins=_binned(ulp[at], codes[at], ends) if ends and len(at) else None,
    )


def _count(errors: Errors, status: int) -> int:
    return int(np.sum(errors.status == status))


def _binned(ulp: Any, codes: Any, ends: tuple[int, int]) -> Bins:
    width = (float(ends[1]) - float(ends[0]) + 1) / BINS
    place = ((codes.astype(np.float64) - float(ends[0])) / width).astype(np.int64)
    place = np.clip(place, 0, BINS - 1)
    start = int(place.min())
    place -= start
    n = int(place.max()) + 1
    order = np.lexsort((np.abs(codes), -ulp, place))
    bins, first = np.unique(place[order], return_index=True)
    worst, top = np.zeros(n, np.int64), np.full(n, -1.0)
    worst[bins], top[bins] = codes[order[first]], ulp[order[first]]
    return Bins(
        start, np.bincount(place, minlength=n), np.bincount(place, ulp, n), top, worst
    )


def merged(parts: Sequence[Tally]) -> Tally:
    """One tally of several, the same in whichever order they come."""
    worst = sorted((w for part in parts for w in part.worst), key=lambda w: w.order)
    return Tally(
        judged=sum(part.judged for part in parts),
        undecided=sum(part.undecided for part in parts),
        kinks=sum(part.kinks for part in parts),
        outside=sum(part.outside for part in parts),
        beyond=sum(part.beyond for part in parts),
        sum_ulp=fsum(part.sum_ulp for part in parts),
        sum_bits=fsum(part.sum_bits for part in parts),
        kinds=tuple(map(sum, zip(*[part.kinds for part in parts], strict=True))),
        worst=tuple(worst[:WORST]),
        bins=_merged_bins([part.bins for part in parts if part.bins is not None]),
    )


def _merged_bins(parts: Sequence[Bins]) -> Bins | None:
    if not parts:
        return None
    points, sums = np.zeros(BINS, np.int64), np.zeros(BINS)
    top, worst = np.full(BINS, -1.0), np.zeros(BINS, np.int64)
    for part in sorted(parts, key=lambda part: (part.start, part.worst.tolist())):
        here = slice(part.start, part.start + len(part.points))
        points[here] += part.points
        sums[here] += part.sum_ulp
        more = part.max_ulp > top[here]
        top[here] = np.where(more, part.max_ulp, top[here])
        worst[here] = np.where(more, part.worst, worst[here])
    return Bins(0, points, sums, top, worst)


def _curve(bins: Bins, input_of: Callable[[Any], Any]) -> Curve:
    some = bins.points > 0
    x = input_of(bins.worst[some]).astype(np.float64)
    mean = bins.sum_ulp[some] / bins.points[some]
    return Curve(*[tuple(map(float, a)) for a in (x, bins.max_ulp[some], mean)])
