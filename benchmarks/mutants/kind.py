"""A kind of wrong gradient: how it is made of a right one, and where it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .inputs import SIZES, Arg
from .operation import Operation, Rule

FRAMEWORKS = ("numpy", "torch", "jax", "tensorflow")
DTYPES = ("float64", "float32")

Change = Callable[[Arg, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Kind:
    """One way to get a gradient wrong.

    Attributes
    ----------
    make
        The wrong rule of an operation, or None where the kind makes no sense.
    diagnosis
        Words, one of which a right diagnosis holds; none if it has no name.
    sizes, same
        Lengths of the inputs; whether all have the first one's shape.
    given
        What the user's inputs are like in the argument concerned: they don't show it.
    shows
        What inputs that show it are like, in every argument or in the one concerned.
    layout
        Inputs that show it lie in memory in another order.
    """

    name: str
    make: Callable[[Operation], Rule | None]
    diagnosis: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = FRAMEWORKS
    dtypes: tuple[str, ...] = DTYPES
    sizes: tuple[tuple[str, int], ...] = tuple(SIZES.items())
    same: bool = False
    given: Change | None = None
    shows: tuple[Change, ...] = ()
    showing_sizes: tuple[tuple[str, int], ...] = ()
    layout: str = "C"
    scale: float = 1.0  # of the forward function
    second_order: bool = False  # right in first order

    def inputs(self, op: Operation, seed: int) -> tuple[np.ndarray, ...]:
        """What the user gives."""
        xs = self._sample(op, seed, self.sizes)
        if self.given is None:
            return xs
        i = op.floats[0]
        return (*xs[:i], self.given(op.args[i], xs[i]), *xs[i + 1 :])

    def showing(self, op: Operation, seed: int) -> Iterator[tuple[np.ndarray, ...]]:
        """Inputs on which the wrong gradient differs from the right one."""
        xs = self._sample(op, seed, self.showing_sizes or self.sizes)
        for change in self.shows or (lambda arg, x: x,):
            for places in (op.floats, op.floats[:1]):
                changed = list(xs)
                for i in places:
                    changed[i] = change(op.args[i], xs[i])
                yield tuple(np.array(x, order=self.layout) for x in changed)  # type: ignore

    def _sample(self, op: Operation, seed: int, sizes: Any) -> tuple[np.ndarray, ...]:
        same = self.same and op.unreduced is not None
        return op.sample(seed, same=same, **dict(sizes))


def scaled(forward: Callable[..., Any], scale: float) -> Callable[..., Any]:
    """The function times a constant, with the function's own signature."""
    if scale == 1:
        return forward
    from functools import wraps

    @wraps(forward)
    def small(*xs: Any) -> Any:
        y = forward(*xs)
        return tuple(scale * v for v in y) if isinstance(y, tuple) else scale * y

    return small


def of_first(op: Operation, change: Callable[..., Any]) -> Rule:
    """The rule with another gradient for the first argument that has one."""
    first = op.floats[0]

    def rule(dy: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        dxs = op.rule(dy, y, *xs)
        return (*dxs[:first], change(dxs[first], xs[first]), *dxs[first + 1 :])

    return rule


def of_all(op: Operation, change: Callable[[Any], Any]) -> Rule:
    """The rule with every gradient changed."""

    def rule(dy: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        return tuple(None if dx is None else change(dx) for dx in op.rule(dy, y, *xs))

    return rule


def each(change: Callable[[Any], Any], dy: Any) -> Any:
    """A change of the upstream gradient, for one output or several."""
    return tuple(map(change, dy)) if isinstance(dy, (tuple, list)) else change(dy)
