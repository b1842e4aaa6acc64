"""Right values in the wrong place: transposed, shifted, another argument's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np

from ..flat import Part
from ..point import Point
from .case import Case
from .jacobian import JacobianBlock, jacobian_blocks
from .model import Diagnosis

Move = Callable[[JacobianBlock], np.ndarray]
AXES = 5  # beyond this many, not all orders of them are tried


def transposed(case: Case) -> Diagnosis | None:
    """The rule has axes in another order: of the gradient, of dy, of a factor."""
    first = _wrong(case)
    if first is None:
        return None
    for order in _orders(first):
        if _everywhere(case, lambda s, order=order: _permuted(s, order)):
            return _named(first, order, *_transposed_words(case, first, order))
    return None


def _named(
    s: JacobianBlock, order: tuple[int, ...], words: str, repair: str
) -> Diagnosis:
    if s.complex_axes and order == _swapped(s.axes, *s.complex_axes):
        return Diagnosis("conjugated", *_CONJUGATED)
    if not _is_plain_sum(s):
        if len(s.inner) == 1 and order[0] != 0:
            return Diagnosis("transposed or wrong axis", f"{words}{_SUMMED}", repair)
        return Diagnosis("transposed", words, repair)
    if len(s.inner) < 2:
        return Diagnosis("wrong axis", "dy is summed over the wrong axis", repair)
    return Diagnosis("wrong axis or transposed", _EITHER.format(words), repair)


def _swapped(n: int, a: int, b: int) -> tuple[int, ...]:
    return tuple({a: b, b: a}.get(k, k) for k in range(n))


_CONJUGATED = (
    "the gradient is computed with a factor that is not conjugated: the gradient is "
    "dL/dRe + i dL/dIm",
    "conjugate the factor that dy is multiplied by",
)
_SUMMED = ", or summed over the wrong axis of it, which is the same here"
_EITHER = "{}; or it is spread along the wrong axis, which is the same here"


def _is_plain_sum(s: JacobianBlock) -> bool:
    """Whether all that the derivative has is ones, or another number."""
    values = s.truth[s.present("truth")]
    alike = np.ptp(values) <= 1e-6 * np.max(np.abs(values))
    return len(s.out) != len(s.inner) and bool(alike)


def _orders(s: JacobianBlock) -> Iterator[tuple[int, ...]]:
    """Other orders of the axes with the same lengths, the simplest first."""
    shape, usual = s.out + s.inner, tuple(range(s.axes))

    def moved(order: tuple[int, ...]) -> int:
        return sum(a != b for a, b in zip(order, usual, strict=True))

    if s.axes > AXES:
        orders = [_swapped(s.axes, a, b) for a, b in combinations(usual, 2)]
    else:
        orders = sorted(permutations(usual), key=moved)
    for order in orders:
        if moved(order) and tuple(shape[k] for k in order) == shape:
            yield order


def _permuted(s: JacobianBlock, order: tuple[int, ...]) -> np.ndarray:
    return np.transpose(s.rule, order) if len(order) == s.axes else s.rule


def _transposed_words(
    case: Case, s: JacobianBlock, order: tuple[int, ...]
) -> tuple[str, str]:
    name, n = case.part.name, len(s.out)
    if order[:n] == tuple(range(n)):
        axes = tuple(k - n for k in order[n:])
        how = f"d{name}.T" if axes == (1, 0) else f"transpose(d{name}, {axes})"
        return f"the gradient of {name} is transposed", f"return {how}"
    if order[n:] == tuple(range(n, s.axes)):
        return (
            "the upstream gradient is used transposed",
            f"transpose dy, with axes {order[:n]}, or don't where you do",
        )
    return (
        f"the gradient of {name} is computed with a transposed factor",
        "transpose the factor that dy is multiplied by (dx = dy @ W.T for y = x @ W)",
    )


def shifted(case: Case) -> Diagnosis | None:
    """The gradient is rolled along an axis."""
    first = _wrong(case)
    if first is None:
        return None
    n = len(first.out)
    for axis, length in enumerate(first.inner):
        for by in {1, -1, 2, -2} if length > 4 else range(1, length):
            if _everywhere(case, lambda s, k=n + axis, by=by: np.roll(s.rule, by, k)):
                by = by - length if by > length // 2 else by
                places = "one place" if abs(by) == 1 else f"{abs(by)} places"
                return Diagnosis(
                    "shifted",
                    f"the gradient is shifted by {places} along axis {axis}",
                    f"roll it back: roll(d{case.part.name}, {by}, axis={axis})",
                )
    return None


def conjugated(case: Case) -> Diagnosis | None:
    def conjugate(s: JacobianBlock) -> np.ndarray:
        return s.rule * np.array([1.0, -1.0])

    if not case.part.is_complex or not _everywhere(case, conjugate):
        return None
    return Diagnosis(
        "conjugated",
        "the gradient is the complex conjugate of the right one, which is "
        "dL/dRe + i dL/dIm",
        "conjugate the gradient",
    )


def swapped(case: Case) -> Diagnosis | None:
    """The gradient is the one of another argument of the same shape."""
    here = case.part
    if len(case.evidence.columns) != here.size:
        return None
    for part in case.point.flat.arguments.parts:
        if part == here or part.shape != here.shape:
            continue
        if part.is_complex != here.is_complex:
            continue
        if all(_is_of(case, part, each.point) for each in case.points):
            return Diagnosis(
                "swapped arguments",
                f"the gradient of {here.name} is the one of {part.name}",
                "return the gradients in the order of the arguments",
            )
    return None


def _is_of(case: Case, part: Part, point: Point) -> bool:
    """Whether the rule's gradient is the derivative by another argument."""
    other = replace(case, part=part).gather(point)
    for _ in range(3):
        u = other.upstream(case.random)
        full = np.zeros(point.y.size)
        full[other.rows] = u
        g = point.linearization.pull(full)[case.part.slice]
        if not np.all(np.abs(g - other.expected(u)) <= other.tolerance(u)):
            return False
    return True


def _wrong(case: Case) -> JacobianBlock | None:
    return next((s for s in jacobian_blocks(case.evidence) if s.is_wrong), None)


def _everywhere(case: Case, move: Move) -> bool:
    """Whether the rule so rearranged is right, for all outputs and at both points."""
    return all(s.same(move(s)) for each in case.points for s in jacobian_blocks(each))
