"""The same inputs in other sizes.

Axes of the same length keep the same length: it is likely that they have to. Arrays of
integers (labels, indices, lengths) are repeated, so that they stay valid, and an axis
that they may count along never gets too short for them. A permutation keeps its length:
repeated, it would have no inverse. The parameters of a module or layer keep their
shapes, and so do axes that are as long: its code may rely on them so much that other
ones crash the process.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from math import ceil
from typing import Any

import numpy as np

from ...core import trees
from ...core.arrays import FRAMEWORKS, NUMPY, framework_of, is_array
from ...core.reach import reached
from .flat import flatten
from .noise import MANY as LARGE
from .problem import Problem
from .structure import structure_of

MANY, LONG = 4200, 1100  # elements: past blocks of 1024 and of 4096
# Of what iterates fewer: equations may take the cube of their number.
MORE, LONGER = 64, 24
LARGEST = 2 * 10**5
FEW = 1024
SINGLE = "axes of length 1"
MOST = 16  # arrays of integers that a function captures

Shape = tuple[int, ...]
Lengths = dict[int, int]  # the new length of each


def resized(
    problem: Problem, random: np.random.Generator
) -> Iterator[tuple[str, Problem]]:
    """Problems of other sizes, with a name each."""
    shapes = [x.shape for x in _arrays(problem)]
    lengths = [n for n in lengths_of(problem) if n not in _fixed(problem)]
    if not lengths:
        return
    yield from _enlarged(problem, shapes, lengths, random)
    for n in lengths:
        if n > 1 and _least(n, counts_of(problem)) == 1:
            one = {m: 1 if m == n else m for m in lengths}
            shorter = _with_lengths(problem, one, random)
            yield f"{SINGLE} instead of {n}", shorter


def counts_of(problem: Problem) -> list[int]:
    """The largest of each array of integers among the inputs and what is captured."""
    given = [x for x in _arrays(problem) if _is_integer(x)]
    held = reached(problem.info.call, stop=_is_integer)
    arrays = [*given, *map(_numpy, islice(held, MOST))]
    return [int(np.max(x)) for x in arrays if x.size]


def _numpy(x: Any) -> np.ndarray:
    """An array of any framework: NumPy's labels are captured beside all of them."""
    return FRAMEWORKS[framework_of(x) or NUMPY].arrays.numpy(x)


def _is_integer(x: Any) -> bool:
    """Whether it is an array of integers, of any framework."""
    return is_array(x) and bool(re.search(r"\bu?int\d", str(x.dtype)))


def _least(n: int, counts: Iterable[int]) -> int:
    """What is left of an axis of length n, if integers are places or lengths on it."""
    return max((min(k + 1, n) for k in counts if 0 < k <= n), default=1)


def _fixed(problem: Problem) -> set[int]:
    """The lengths of axes that belong to the structure of an array."""
    arrays = [(x, structure_of(x)) for x in _arrays(problem) if x.dtype.kind in "fc"]
    kept = [x.shape[x.ndim - s.axes :] for x, s in arrays if s is not None and s.axes]
    return {n for shape in kept for n in shape} | _permuted(problem)


def _permuted(problem: Problem) -> set[int]:
    """The lengths of permutations: rows of integers, each place once, not in order."""
    rows = [x for x in _arrays(problem) if x.dtype.kind in "iu" and x.ndim == 1]
    every = [(x, np.arange(x.size)) for x in rows]
    return {
        x.size
        for x, places in every
        if np.array_equal(np.sort(x), places) and not np.array_equal(x, places)
    }


def _enlarged(
    problem: Problem,
    shapes: list[Shape],
    lengths: list[int],
    random: np.random.Generator,
) -> Iterator[tuple[str, Problem]]:
    """Problems, as few as possible, in which each argument once has many elements."""
    every = dict(zip(problem.perturbed, (x.shape for x in problem.xs), strict=True))
    many, long = (MORE, LONGER) if problem.traits.iterates else (MANY, LONG)

    def large(new: Lengths) -> set[str]:
        return {name for name, shape in every.items() if _size(shape, new) > long}

    # Of a module one axis is made longer: attention takes the square of two.
    ways = [_many(shape, lengths, many, long) for shape in every.values()]
    ways = [] if problem.info.captured else ways
    ways.sort(key=lambda new: -len(large(new)))
    # An axis may have the length of another by chance.
    alone = [_alone(shape, shapes, lengths, many) for shape in every.values()]
    ways += chain.from_iterable(alone)
    ways = [{n: new[n] for n in lengths} for new in ways]
    seen: set[str] = set()
    for new in ways:
        more = large(new) - seen
        if not more or sum(_size(shape, new) for shape in shapes) > LARGEST:
            continue  # a matrix, since it shares a length with a vector
        larger = _with_lengths(problem, new, random)
        if _is_accepted(larger):
            names = f" in {', '.join(sorted(more))}" if seen else ""
            yield f"many elements{names}", larger
            seen |= more


def _alone(
    shape: Shape, shapes: list[Shape], lengths: list[int], many: int
) -> Iterator[Lengths]:
    """Many elements by one axis whose length no other array has."""
    for n in shape:
        if n in lengths and sum(other.count(n) for other in shapes) == 1:
            rest = _size(shape, {}) // n
            yield {**{m: m for m in lengths}, n: ceil(many / rest)}


def _is_accepted(problem: Problem) -> bool:
    """Whether operation and rule accept it, and the outputs are not too large.

    They are if both axes of a product have the same length. Where all is zero there is
    nothing to see: the product of many numbers underflows.
    """
    try:
        linearized = flatten(problem).linearize(flatten(problem).x)
        if linearized.y.size > LARGEST:
            return False
        g = linearized.pull(np.ones(linearized.y.size))
    except Exception:
        return False
    return bool(np.any(linearized.y) or np.any(g))


def _size(shape: Shape, lengths: Lengths) -> int:
    return int(np.prod([lengths.get(n, n) for n in shape], dtype=int))


def emptied(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """Problems without elements."""
    lengths = lengths_of(problem)
    for n in lengths[-1:]:
        none = {m: 0 if m == n else m for m in lengths}
        yield "no elements", _with_lengths(problem, none, np.random.default_rng(0))


def _many(shape: Shape, lengths: list[int], many: int, long: int) -> Lengths:
    """New lengths, such that an array of this shape has many elements."""
    new = {n: n for n in lengths}
    shape = tuple(n for n in shape if n in new)
    if not shape:
        return new
    last = shape[-1]
    if len(shape) == 1:
        return {**new, last: many}
    times = shape.count(last)
    rest = int(np.prod([n for n in shape if n != last], dtype=int))
    if times > 1:
        return {**new, last: max(last, ceil((many / max(rest, 1)) ** (1 / times)))}
    new[last] = max(last, long)
    first = shape[0]
    if first != last and new[last] * rest < many:
        new[first] = ceil(many / (new[last] * rest / first))
    return new


def _with_lengths(
    problem: Problem, lengths: Lengths, random: np.random.Generator
) -> Problem:
    names = iter(problem.names)

    def leaf(x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return x
        is_data = x.dtype.kind in "fc" and next(names) in problem.frozen
        shape: Any = tuple(lengths.get(n, n) for n in x.shape)
        if shape == x.shape:
            return x
        if not x.size:
            return np.zeros(shape, x.dtype)
        new = np.resize(x, shape)
        if x.dtype.kind not in "fc" or is_data or structure_of(x) is not None:
            return new
        return (new * (1 + 0.1 * random.standard_normal(shape))).astype(x.dtype)

    return problem.with_inputs(trees.map(leaf, problem.inputs))


def _arrays(problem: Problem) -> list[np.ndarray]:
    return [x for x in trees.leaves(problem.inputs) if isinstance(x, np.ndarray)]


def lengths_of(problem: Problem) -> list[int]:
    """The lengths of all axes that may have another one, each once, in order."""
    parameters = (problem.info.captured or {}).values()
    fixed = {n for x in parameters for n in x.shape}
    return sorted({n for x in _arrays(problem) for n in x.shape if n > 0} - fixed)


# --- smaller


def truncated_if_large(problem: Problem) -> Problem | None:
    """The first elements of large inputs; None for others."""
    return truncated(problem) if sum(x.size for x in problem.xs) >= LARGE else None


def truncated(problem: Problem) -> Problem | None:
    """The first elements of large inputs, about a thousand.

    None if the operation does not take them.
    """
    lengths = _shortened(problem, counts_of(problem))
    last = None
    if lengths is None:  # too many places: those beyond the end become the last one
        lengths = _shortened(problem, ())
        if lengths is None:
            return None
        last = min(lengths.values(), default=1) - 1
    cut = cropped(problem, lengths, last)
    try:
        found = cut.linearize(cut.xs)
        found.pull([np.ones_like(y) for y in found.ys])
    except Exception:
        return None
    return cut if all(np.all(np.isfinite(y)) for y in found.ys) else None


def _shortened(problem: Problem, counts: Iterable[int]) -> Lengths | None:
    """Lengths with few elements in each array; None if there are none."""
    lengths = {n: n for n in lengths_of(problem)}
    kept = _permuted(problem)
    spare = {n: 0 if n in kept else n - _least(n, counts) for n in lengths}
    while max(_size(x.shape, lengths) for x in _arrays(problem)) > FEW:
        n = max(lengths, key=lambda n: min(lengths[n], spare[n]), default=0)
        fewer = min(ceil(lengths.get(n, 0) / 2), spare.get(n, 0))
        if not fewer:
            return None
        lengths[n] -= fewer
        spare[n] -= fewer
    return lengths


def cropped(problem: Problem, lengths: Lengths, last: int | None = None) -> Problem:
    """With the first elements along each axis, and no index beyond `last`."""

    def leaf(x: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return x
        x = x[tuple(slice(lengths.get(n, n)) for n in x.shape)].copy()
        if last is None or x.dtype.kind not in "iu":
            return x
        return np.minimum(x, last)

    return problem.with_inputs(trees.map(leaf, problem.inputs))
