"""The same inputs in other sizes.

Axes of one length stay axes of one length: it is likely that they have to be. Arrays of
whole numbers (labels, indices) are repeated, so that they stay valid.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any

import numpy as np

from ...core import trees
from .flat import flat
from .problem import Problem

MANY = 4200  # elements: past blocks of 1024 and of 4096
LONG = 1100
LARGEST = 2 * 10**5


def resized(
    problem: Problem, random: np.random.Generator
) -> Iterator[tuple[str, Problem]]:
    """Problems of other sizes, with a name each."""
    shapes = [x.shape for x in trees.leaves(problem.inputs) if is_array(x)]
    lengths = sorted({n for shape in shapes for n in shape if n > 0})
    if not lengths:
        return
    yield from _enlarged(problem, shapes, lengths, random)
    for n in lengths:
        if n > 1:
            one = {m: 1 if m == n else m for m in lengths}
            yield (
                f"axes of length 1 instead of {n}",
                _with_lengths(problem, one, random),
            )


Shape = tuple[int, ...]
Lengths = dict[int, int]


def _enlarged(
    problem: Problem,
    shapes: list[Shape],
    lengths: list[int],
    random: np.random.Generator,
) -> Iterator[tuple[str, Problem]]:
    """Each argument has many elements once, in few problems."""
    moved = dict(zip(problem.moved, (x.shape for x in problem.xs), strict=True))

    def large(new: Lengths) -> set[str]:
        return {name for name, shape in moved.items() if size(shape, new) > LONG}

    ways = [_many(shape, lengths) for shape in moved.values()]
    ways.sort(key=lambda new: -len(large(new)))
    # An axis may have the length of another by chance.
    ways += [new for shape in moved.values() for new in _alone(shape, shapes, lengths)]
    seen: set[str] = set()
    for new in ways:
        more = large(new) - seen
        if not more or sum(size(shape, new) for shape in shapes) > LARGEST:
            continue  # a matrix, since it shares a length with a vector
        larger = _with_lengths(problem, new, random)
        if _is_taken(larger):
            names = f" in {', '.join(sorted(more))}" if seen else ""
            yield f"many elements{names}", larger
            seen |= more


def _alone(shape: Shape, shapes: list[Shape], lengths: list[int]) -> Iterator[Lengths]:
    """Many elements by one axis whose length no other array has."""
    for n in shape:
        if sum(other.count(n) for other in shapes) == 1:
            rest = size(shape, {m: m for m in lengths}) // n
            yield {**{m: m for m in lengths}, n: ceil(MANY / rest)}


def _is_taken(problem: Problem) -> bool:
    """Whether operation and rule take it, and the outputs are not too large.

    One length for two axes, of a product, makes them so.
    """
    try:
        point = flat(problem).linear(flat(problem).x)
        if point.y.size > LARGEST:
            return False
        point.pull(np.zeros(point.y.size))
    except Exception:
        return False
    return True


def size(shape: Shape, lengths: Lengths) -> int:
    return int(np.prod([lengths[n] for n in shape], dtype=int))


def emptied(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """Problems without elements."""
    shapes = [x.shape for x in trees.leaves(problem.inputs) if is_array(x)]
    lengths = sorted({n for shape in shapes for n in shape if n > 0})
    for n in lengths[-1:]:
        none = {m: 0 if m == n else m for m in lengths}
        yield "no elements", _with_lengths(problem, none, np.random.default_rng(0))


def _many(shape: Shape, lengths: list[int]) -> Lengths:
    """New lengths, such that an array of this shape has many elements."""
    new = {n: n for n in lengths}
    if not shape:
        return new
    last = shape[-1]
    if len(shape) == 1:
        return {**new, last: MANY}
    times = shape.count(last)
    rest = int(np.prod([n for n in shape if n != last], dtype=int))
    if times > 1:
        return {**new, last: max(last, ceil((MANY / max(rest, 1)) ** (1 / times)))}
    new[last] = max(last, LONG)
    first = shape[0]
    if first != last and new[last] * rest < MANY:
        new[first] = ceil(MANY / (new[last] * rest / first))
    return new


def _with_lengths(
    problem: Problem, lengths: Lengths, random: np.random.Generator
) -> Problem:
    shorter = [new for old, new in lengths.items() if new < old]
    shortest = max(min(shorter, default=2**31) - 1, 0)

    def leaf(x: Any) -> Any:
        if not is_array(x):
            return x
        shape: Any = tuple(lengths.get(n, n) for n in x.shape)
        if shape == x.shape and x.dtype.kind not in "iu":
            return x
        if not x.size:
            return np.zeros(shape, x.dtype)
        new = np.resize(x, shape)
        if x.dtype.kind not in "fc":
            # An index must not point beyond an axis that became shorter.
            if x.dtype.kind not in "iu":
                return new
            return np.minimum(new, min(shortest, np.iinfo(x.dtype).max))
        return (new * (1 + 0.1 * random.standard_normal(shape))).astype(x.dtype)

    return problem.with_inputs(trees.map(leaf, problem.inputs))


def is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray)
