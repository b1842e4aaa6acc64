"""The same inputs in other sizes.

Axes of one length stay axes of one length: it is likely that they have to be. Arrays of
whole numbers (labels, indices) are repeated, so that they stay valid.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Any

import numpy as np

from .. import _tree
from .problem import Problem

MANY = 4200  # elements: past blocks of 1024 and of 4096
LONG = 1100
FEW = 1024
LARGEST = 2 * 10**5


def resized(
    problem: Problem, random: np.random.Generator
) -> Iterator[tuple[str, Problem]]:
    """Problems of other sizes, with a name each."""
    shapes = [x.shape for x in _tree.leaves(problem.inputs) if _is_array(x)]
    lengths = sorted({n for shape in shapes for n in shape if n > 0})
    if not lengths:
        return
    for name, many in _enlarged(problem, lengths):
        if sum(_size(shape, many) for shape in shapes) > LARGEST:
            continue  # a matrix, since it shares a length with a vector
        larger = _with_lengths(problem, many, random)
        if not _is_too_large(larger):
            yield name, larger
    for n in lengths:
        if n > 1:
            one = {m: 1 if m == n else m for m in lengths}
            yield (
                f"axes of length 1 instead of {n}",
                _with_lengths(problem, one, random),
            )


def _enlarged(
    problem: Problem, lengths: list[int]
) -> Iterator[tuple[str, dict[int, int]]]:
    """New lengths, such that each argument has many elements once; few in all."""
    shapes = dict(zip(problem.moved, (x.shape for x in problem.xs), strict=True))
    every = [_many(shape, lengths) for shape in shapes.values()]

    def large(new: dict[int, int]) -> set[str]:
        return {name for name, shape in shapes.items() if _size(shape, new) > LONG}

    seen: set[str] = set()
    for new in sorted(every, key=lambda new: -len(large(new))):
        if more := large(new) - seen:
            names = f" in {', '.join(sorted(more))}" if seen else ""
            yield f"many elements{names}", new
            seen |= more


def _is_too_large(problem: Problem) -> bool:
    """Whether the outputs are: one length for two axes, of a product, makes them so."""
    try:
        return sum(y.size for y in problem.value(problem.xs)) > LARGEST
    except Exception:
        return False


def smaller(problem: Problem) -> Problem | None:
    """The beginning of large inputs, with a thousand elements or so.

    None if the operation does not take it.
    """
    arrays = [x for x in _tree.leaves(problem.inputs) if _is_array(x)]
    lengths = {n: n for x in arrays for n in x.shape}
    while max(_size(x.shape, lengths) for x in arrays) > FEW:
        longest = max(lengths, key=lambda n: lengths[n])
        lengths[longest] //= 2
    cut = problem.with_inputs(_tree.map(lambda x: _cut(x, lengths), problem.inputs))
    try:
        found = cut.linear(cut.xs)
        found.pull([np.ones_like(y) for y in found.ys])
    except Exception:
        return None
    return cut if all(np.all(np.isfinite(y)) for y in found.ys) else None


def _size(shape: tuple[int, ...], lengths: dict[int, int]) -> int:
    return int(np.prod([lengths[n] for n in shape], dtype=int))


def _cut(x: Any, lengths: dict[int, int]) -> Any:
    if not _is_array(x):
        return x
    x = x[tuple(slice(lengths[n]) for n in x.shape)].copy()
    if x.dtype.kind not in "iu":
        return x
    return np.minimum(x, min(lengths.values()) - 1)  # indices stay valid


def emptied(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """Problems without elements."""
    shapes = [x.shape for x in _tree.leaves(problem.inputs) if _is_array(x)]
    lengths = sorted({n for shape in shapes for n in shape if n > 0})
    for n in lengths[-1:]:
        none = {m: 0 if m == n else m for m in lengths}
        yield "no elements", _with_lengths(problem, none, np.random.default_rng(0))


def _many(shape: tuple[int, ...], lengths: list[int]) -> dict[int, int]:
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
    problem: Problem, lengths: dict[int, int], random: np.random.Generator
) -> Problem:
    shorter = [new for old, new in lengths.items() if new < old]
    shortest = max(min(shorter, default=2**31) - 1, 0)

    def leaf(x: Any) -> Any:
        if not _is_array(x):
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

    return problem.with_inputs(_tree.map(leaf, problem.inputs))


def _is_array(x: Any) -> bool:
    return isinstance(x, np.ndarray)
