"""Ranges of inputs that fail in the same way, and their exact bounds.

Points are ordered by their codes. A range holds at least as many points that fail as
others; its bounds are found by dividing what lies between the last point that does not
fail and the first that does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

PARTS = 33  # points that are tried between two, at once
NEAR = 1024  # codes on both sides of a bound, where exceptions are looked for
IsBad = Callable[[Any], Any]  # of codes


@dataclass(frozen=True)
class Range:
    """Codes from `low` to `high` that fail.

    `before` and `after` are the codes next to them that do not, None at the end of all
    that is judged. `sharp`: near its bounds there are no exceptions on either side.
    """

    low: int
    high: int
    before: int | None
    after: int | None
    points: Any  # which of the points lie in it and fail
    sharp: bool = True


def ranges(codes: Any, bad: Any) -> list[Range]:
    """The ranges of points that fail, before they are refined. Codes are in order."""
    found: list[list[int]] = []  # [first, last, how many fail], by index
    for i in np.flatnonzero(bad).tolist():
        run = [i, i, 1]
        while found and run[0] - found[-1][1] - 1 <= min(found[-1][2], run[2]):
            last = found.pop()
            run = [last[0], run[1], last[2] + run[2]]
        found.append(run)
    return [_range(codes, bad, first, last) for first, last, _ in found]


def _range(codes: Any, bad: Any, i: int, j: int) -> Range:
    return Range(
        int(codes[i]), int(codes[j]),
        int(codes[i - 1]) if i else None,
        int(codes[j + 1]) if j + 1 < len(codes) else None,
        i + np.flatnonzero(bad[i : j + 1]),
    )  # fmt: skip


def large(every: list[Range], codes: Any, bad: Any, few: int, gap: int) -> list[Range]:
    """Ranges of so many points at least; those not further apart are one."""
    found: list[tuple[int, int]] = []
    for one in every:
        if len(one.points) < few:
            continue
        first, last = int(one.points[0]), int(one.points[-1])
        if found and int(codes[first]) - int(codes[found[-1][1]]) <= gap:
            first = found.pop()[0]
        found.append((first, last))
    return [_range(codes, bad, first, last) for first, last in found]


def refined(one: Range, is_bad: IsBad) -> Range:
    """With the bounds that it truly has."""
    low, high, before, after = one.low, one.high, one.before, one.after
    if before is not None:
        before, low = boundary(before, low, is_bad)
    if after is not None:
        after, high = boundary(after, high, is_bad)
    sharp = _is_sharp(before, low, high, is_bad) and _is_sharp(after, high, low, is_bad)
    return replace(one, low=low, high=high, before=before, after=after, sharp=sharp)


def boundary(good: int, bad: int, is_bad: IsBad) -> tuple[int, int]:
    """The neighbours between which it changes from good to bad.

    Where it changes more than once, at the place with the fewest exceptions.

    >>> boundary(0, 10**6, lambda codes: codes > 1234)
    (1234, 1235)
    """
    while abs(bad - good) > 1:
        step = 1 if bad > good else -1
        inner = abs(bad - good) - 1
        places = np.unique(np.linspace(1, inner, min(PARTS, inner)).astype(np.int64))
        codes = good + step * places
        says = np.asarray(is_bad(codes), bool)
        # exceptions if the first k are good: those of them that are bad, and others
        exceptions = np.concatenate([[0], np.cumsum(says)]) + np.concatenate(
            [np.cumsum(~says[::-1])[::-1], [0]]
        )
        k = int(np.argmin(exceptions))
        good = int(codes[k - 1]) if k else good
        bad = int(codes[k]) if k < len(codes) else bad
    return good, bad


def _is_sharp(good: int | None, bad: int, end: int, is_bad: IsBad) -> bool:
    """Whether all is good on one side of a bound, and bad on the other to the end."""
    if good is None:
        return True
    step = bad - good
    far = np.unique(np.geomspace(1, NEAR, 16).astype(np.int64))
    inside = bad + step * far[far <= abs(end - bad)]
    says = np.asarray(is_bad(np.concatenate([good - step * far, inside])), bool)
    return bool(not says[: len(far)].any() and says[len(far) :].all())


def is_symmetric(codes: Any, bad: Any, binade: int) -> bool:
    """Whether positive and negative numbers fail alike, by powers of 2."""
    if codes[0] >= 0 or codes[-1] <= 0:
        return not bad[codes != 0].any()  # nothing but 0
    n = int(np.abs(codes).max()) // binade + 1
    shares = []
    for side in (codes > 0, codes < 0):
        place = np.abs(codes[side]) // binade
        all_, fail = (np.bincount(p, minlength=n) for p in (place, place[bad[side]]))
        shares.append(fail / np.maximum(all_, 1))
    apart, all_ = np.abs(shares[0] - shares[1]).sum(), (shares[0] + shares[1]).sum()
    return bool(apart <= all_ / 4)
