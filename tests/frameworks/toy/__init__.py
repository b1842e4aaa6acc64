"""A framework of a few dozen lines: arrays that remember what they were made from.

It shows what a framework must offer so that `gs.check` runs on it: this class, and the
parts `arrays`, `call` and `calculus` beside it. Nothing in the package knows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__version__ = "1.0"


class Array:
    """An array with its parents, and a function from its gradient to each of theirs.

    These functions compute with arrays of this class, so that they can be
    differentiated again.
    """

    def __init__(
        self,
        value: Any,
        parents: Sequence[Array] = (),
        pull: Callable[[Array], Sequence[Any]] = lambda dy: (),
    ) -> None:
        self.value = np.asarray(value)
        self.parents, self.pull = tuple(parents), pull

    shape = property(lambda self: self.value.shape)
    dtype = property(lambda self: self.value.dtype)

    def __mul__(self, other: Any) -> Array:
        if not isinstance(other, Array):  # a number
            return Array(self.value * other, [self], lambda dy: [dy * other])
        product = self.value * other.value
        return Array(product, [self, other], lambda dy: [dy * other, dy * self])

    def __add__(self, other: Array) -> Array:
        return Array(self.value + other.value, [self, other], lambda dy: [dy, dy])

    def __pow__(self, n: int) -> Array:
        slope = lambda: self ** (n - 1) * n
        return Array(self.value**n, [self], lambda dy: [dy * slope()])

    __rmul__ = __mul__


def gradients(ys: Sequence[Array], xs: Sequence[Array], dys: Sequence[Array]) -> list:
    """The gradient of <ys, dys> by each x; None where no y depends on it."""
    found: dict[int, Array] = {}
    for y, dy in zip(ys, dys, strict=True):
        _add(found, y, dy)
    for y in reversed(_parents_first(ys)):
        if id(y) in found and y.parents:
            for x, dx in zip(y.parents, y.pull(found[id(y)]), strict=True):
                if dx is not None:
                    _add(found, x, dx)
    return [found.get(id(x)) for x in xs]


def _add(found: dict[int, Array], x: Array, dx: Array) -> None:
    found[id(x)] = found[id(x)] + dx if id(x) in found else dx


def _parents_first(ys: Sequence[Array]) -> list[Array]:
    order: dict[int, Array] = {}

    def visit(y: Array) -> None:
        if id(y) not in order:
            for x in y.parents:
                visit(x)
            order[id(y)] = y

    for y in ys:
        visit(y)
    return [*order.values()]
