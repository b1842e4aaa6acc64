"""Which elements of a large argument have a wrong gradient.

If each output has its own element, one slope tells all. Otherwise the gradients of a
group are compared along one random direction, and groups are halved: the first wrong
element is the last of the shortest wrong group that starts at element 0. Some between
the first and the last one are compared on their own. Memory is linear, and time but for
a logarithm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..differences import slope
from ..flat import Part
from ..numerics import norm
from ..point import SIGMAS, Point
from .case import Case
from .evidence import ROUNDING, USUAL

SINGLE = 12  # elements that are compared one by one
STEPS = (2.0**-7, 2.0**-9)
VISIBLE = 1e-6  # of the largest


@dataclass(frozen=True)
class Location:
    """Wrong and right elements, as far as they are known, as places in the vector."""

    words: str | None
    wrong: np.ndarray
    right: np.ndarray
    first: int | None = None  # the first wrong element, if all from there on are wrong


def locate(case: Case) -> Location:
    if not case.elementwise:
        return _by_halves(case)
    wrong, right = _elementwise(case)
    flags = np.zeros(case.part.size, bool)
    flags[wrong] = True
    first = _start_of_wrong_tail(wrong, right)
    words = describe_elements(case.part, flags) if first is None else _from(first)
    return Location(words, wrong + case.part.start, right + case.part.start, first)


def _start_of_wrong_tail(wrong: np.ndarray, right: np.ndarray) -> int | None:
    """From where on all are wrong, if several are, and all after the right ones.

    Between the last right and the first wrong one, it is the roundest number.
    """
    if wrong.size < 2 or not right.size or wrong[0] < right[-1]:
        return None
    low, high = int(right[-1]) + 1, int(wrong[0])
    for power in reversed(range(high.bit_length())):
        if (round_one := high >> power << power) >= low:
            return round_one
    return high


def _from(first: int) -> str:
    return f"from element {first} on (flat)"


def _by_halves(case: Case) -> Location:
    groups = GroupComparison(case)
    start, size = case.part.start, case.part.size
    none = np.zeros(0, int)
    first = groups.boundary()
    if groups.one(first) <= 0:
        return Location(None, none, none)
    if first + 1 == size or groups.state(first + 1, size, quick=True) <= 0:
        flags = np.zeros(size, bool)
        flags[first] = True
        return Location(
            describe_elements(case.part, flags), np.array([first + start]), none
        )
    last = size - 1 - groups.boundary(backward=True)
    wrong, right = _singles(case, groups, first, last)
    begin = _start_of_wrong_tail(wrong, right)
    words = _words(case, first, last, right) if begin is None else _from(begin)
    return Location(words, wrong + start, right + start, begin)


def _singles(
    case: Case, groups: GroupComparison, first: int, last: int
) -> tuple[np.ndarray, np.ndarray]:
    """Elements on their own: between the first and the last wrong one, and around."""
    size, random = case.part.size, case.random
    # Where the rule gives something, a right gradient can be seen.
    share = np.abs(groups.g * groups.v)[case.part.slice]
    claimed = np.flatnonzero(share > VISIBLE * np.max(share))
    before, inside = claimed[claimed < first], claimed[claimed > first]
    chosen = np.unique(
        [
            max(first - 1, 0),
            *random.permutation(before)[:SINGLE],
            *random.permutation(inside)[: SINGLE // 2],
            *random.integers(first, last + 1, SINGLE // 2),
            size - 1,
        ]
    )
    states = np.array([groups.one(int(i)) for i in chosen])
    wrong = np.unique([first, last, *chosen[states > 0]])
    return wrong, chosen[states < 0]


def _words(case: Case, first: int, last: int, right: np.ndarray) -> str | None:
    if np.any((right > first) & (right < last)):
        return f"some of the elements {first} to {last} (flat)"
    flags = np.zeros(case.part.size, bool)
    flags[first : last + 1] = True
    return describe_elements(case.part, flags)


class GroupComparison:
    """Compares groups of an argument's elements at a point."""

    def __init__(self, case: Case, point: Point | None = None) -> None:
        self.case = case
        self.point = point or case.point
        self.v = self.point.direction()
        self.u = self.point.upstream()
        self.g = self.point.linearization.pull(self.u)

    def boundary(self, *, backward: bool = False) -> int:
        """How many elements come before the first wrong one, or after the last."""
        for quick in (True, False):
            k = self._halved(backward, quick)
            i = self.case.part.size - 1 - k if backward else k
            if self.one(i) > 0:
                break
        return k

    def _halved(self, backward: bool, quick: bool) -> int:
        size = self.case.part.size
        low, high = 0, size - 1
        while low < high:
            middle = (low + high) // 2
            ends = (size - 1 - middle, size) if backward else (0, middle + 1)
            wrong = self.state(*ends, quick=quick) > 0
            low, high = (low, middle) if wrong else (middle + 1, high)
        return low

    def one(self, i: int) -> int:
        """The state of one element, with short steps and with long ones."""
        state = self.state(i, i + 1)
        return min(state, self.state(i, i + 1, quick=True)) if state > 0 else state

    def state(self, start: int, stop: int, *, quick: bool = False) -> int:
        """Of the elements from start to stop: 1 if wrong, -1 if right, 0 if nothing."""
        here = slice(self.case.part.start + start, self.case.part.start + stop)
        v = np.zeros(self.point.x.size)
        v[here] = self.v[here]
        with np.errstate(all="ignore"):
            value, error = self._slope(v, quick)
            used = np.isfinite(value) & np.isfinite(error)
            terms = self.g[here] * v[here]
            truth = float((self.u * value)[used].sum())
            margin = SIGMAS * norm((self.u * error)[used])
            margin += ROUNDING * self.point.flat.eps * norm(terms)
            if not abs(float(terms.sum()) - truth) <= margin:
                return 1
            return -1 if abs(truth) > 8 * margin else 0

    def _slope(self, v: np.ndarray, quick: bool) -> tuple[np.ndarray, np.ndarray]:
        if quick:  # enough for groups, and shorter than most kinks are near
            h = 2.0**-18 if self.point.flat.eps < 1e-12 else STEPS[-1]
            value = self._central(v, h)
            return value, 1e-6 * np.abs(value) + self.point.noise / h
        wide, narrow = (self._central(v, h) for h in STEPS)
        value = narrow + (narrow - wide) / 15
        return value, np.abs(value - narrow) / 8 + self.point.noise / STEPS[-1]

    def _central(self, v: np.ndarray, h: float) -> np.ndarray:
        f, x = self.point.flat.value, self.point.x
        return (f(x + h * v) - f(x - h * v)) / (2 * h)


def _elementwise(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """The places in the argument where the gradient is wrong, and where it is right."""
    wrong, some = elementwise_flags(case, case.point)
    wrong &= ~_beside_kinks(case, np.flatnonzero(wrong))
    return np.flatnonzero(wrong), np.flatnonzero(some & ~wrong)


def elementwise_flags(case: Case, point: Point) -> tuple[np.ndarray, np.ndarray]:
    """Where the gradient is wrong, and where there is one, if it is elementwise."""
    v = np.zeros(point.x.size)
    v[case.part.slice] = point.scale[case.part.slice]
    found = slope(
        point.flat.value,
        point.x,
        v,
        y=point.y,
        noise=point.noise,
        step=USUAL[0],
        steps=USUAL[1],
    )
    u = point.upstream()
    with np.errstate(all="ignore"):
        g = (point.linearization.pull(u) * v)[case.part.slice]
        one, two = u * found.low, u * found.high
        low, high = np.minimum(one, two), np.maximum(one, two)
        margin = SIGMAS * np.abs(u) * found.error
        margin += ROUNDING * point.flat.eps * np.maximum(np.abs(g), np.abs(low))
        settled = np.isfinite(low) & np.isfinite(margin)
        wrong = settled & ~((g >= low - margin) & (g <= high + margin))
        return wrong, settled & (np.maximum(np.abs(low), np.abs(high)) > 8 * margin)


def _beside_kinks(case: Case, wrong: np.ndarray) -> np.ndarray:
    """Elements that are right with steps too short to reach a kink nearby."""
    point, here = case.point, case.part.start + wrong
    right = np.zeros(case.part.size, bool)
    h, v = 2.0**-16, np.zeros(point.x.size)
    v[here] = point.scale[here]
    u = np.zeros(point.y.size)
    u[wrong] = 1.0
    with np.errstate(all="ignore"):
        rough = point.central_difference(v, h)[wrong]
        g = (point.linearization.pull(u) * v)[here]
        right[wrong] = np.abs(g - rough) <= 1e-6 * np.abs(rough)
    return right


# --- which elements, in words


SHOWN = 4


def describe_elements(part: Part, wrong: np.ndarray) -> str | None:
    """The elements of an argument where `wrong` holds (one for each real number).

    >>> describe_elements(Part("x", 0, (3, 4)), np.arange(12) % 4 == 1)
    'column 1'
    """
    flags = _by_element(part, wrong)
    count, size = int(flags.sum()), flags.size
    if not part.shape or not count:
        return None
    if count == size:
        return "the only element" if size == 1 else f"all {size} elements"
    if count == 1:
        return f"element {_index(part, int(np.argmax(flags)))}"
    return describe_pattern(part, wrong) or _listed(part, flags)


def describe_pattern(part: Part, wrong: np.ndarray) -> str | None:
    """A row, a column, the end, every second one: if it is as regular as that."""
    flags = _by_element(part, wrong)
    if not 0 < flags.sum() < flags.size or not part.shape:
        return None
    return _slab(flags) or _run(flags.ravel()) or _stride(flags.ravel())


def _by_element(part: Part, wrong: np.ndarray) -> np.ndarray:
    pairs = np.reshape(wrong, (*part.shape, 1 + part.is_complex))
    return np.any(pairs, axis=-1)


def _slab(flags: np.ndarray) -> str | None:
    """All elements with one index along an axis, in arrays of two axes or more."""
    for axis in range(flags.ndim if flags.ndim > 1 else 0):
        lines = np.moveaxis(flags, axis, 0).reshape(flags.shape[axis], -1)
        chosen = np.flatnonzero(lines.all(axis=1))
        if len(chosen) == 1 and np.array_equal(lines.any(axis=1), lines.all(axis=1)):
            return _line(flags.ndim, axis, int(chosen[0]))
    return None


def _line(ndim: int, axis: int, k: int) -> str:
    if ndim == 2:
        return f"row {k}" if axis == 0 else f"column {k}"
    return f"index {k} along axis {axis}"


def _run(flags: np.ndarray) -> str | None:
    """One stretch of at least two, in the order of memory."""
    where = np.flatnonzero(flags)
    first, last = int(where[0]), int(where[-1])
    if last - first + 1 != where.size or where.size < 2:
        return None
    if last == flags.size - 1:
        return f"from element {first} on (flat)"
    if first == 0:
        return f"up to element {last} (flat)"
    return f"elements {first} to {last} (flat)"


def _stride(flags: np.ndarray) -> str | None:
    where = np.flatnonzero(flags)
    if where.size < 3:
        return None
    step, first = int(where[1] - where[0]), int(where[0])
    if not np.array_equal(where, np.arange(first, flags.size, step)) or first >= step:
        return None
    each = {2: "second", 3: "third"}.get(step, f"{step}th")
    return f"every {each} element" + (f", from element {first} on" if first else "")


def _listed(part: Part, flags: np.ndarray) -> str:
    where = np.flatnonzero(flags)
    named = [_index(part, int(i)) for i in where[:SHOWN]]
    more = ", ..." if len(where) > SHOWN else ""
    return f"{len(where)} of {flags.size} elements: {', '.join(named)}{more}"


def _index(part: Part, element: int) -> str:
    return str([int(k) for k in np.unravel_index(element, part.shape)])
