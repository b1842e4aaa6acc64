"""Balls: an array of certified numbers which NumPy's functions compute and record.

A number is a ball of Arb: a midpoint and a radius that encloses the true value, however
it was rounded. The balls lie in an object array, so that NumPy does shapes and loops:
46 ns an addition, while a series of value and derivative takes 570 to make. What is
recorded are true derivatives, from a table of their own: the engine's formulas have
rounded constants and series that end. The nodes and the walk back are the engine's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ....core.errors import UnsupportedOperationError
from ....core.rule import name_of
from ....core.tape import Node, walk_back
from .arb import ObjectArray, arb, balls_of, each, zeros


class Notes:
    """Masks of where something was met; `side` is how exact ties are broken.

    A tie is broken upwards (1), downwards (-1), or as floating-point numbers would
    (0). The derivative on each side of a kink is that of the run on this side.
    """

    def __init__(self, *, side: int, careful: bool) -> None:
        self.side = side
        self.careful = careful  # look for kinks and domains: 60 ns more a call
        self.masked = False  # cotangents may be 0 since a branch was not taken
        self.ties: list[Any] = []  # the derivative may differ on both sides
        self.kinks: list[Any] = []  # the slope is infinite, and declared otherwise
        self.outside: list[Any] = []  # there is no value: outside of a domain, a pole
        self.unsure: list[Any] = []  # a choice that no ball can express, as of an index


class _State(threading.local):
    notes: Notes = Notes(side=0, careful=False)


state = _State()


@contextmanager
def noting(*, side: int = 0, careful: bool = False) -> Iterator[Notes]:
    """Take notes of what follows."""
    before, state.notes = state.notes, Notes(side=side, careful=careful)
    try:
        yield state.notes
    finally:
        state.notes = before


# Functions of balls, by the function of NumPy or SciPy that they stand for
CALLS: dict[Any, Callable[..., Any]] = {}
# Tried in order for the others
OTHERS: list[Callable[..., Any]] = []


class Balls(ObjectArray):
    """Certified numbers, and the node that leads back to what they came from.

    `dtype` is that of the numbers which they are the truth of. To operations of ours
    balls are no arrays: the body gets them as they are, and no rule is called.
    """

    __slots__ = ("dtype", "node", "value")

    def __init__(self, value: Any, dtype: Any = float, node: Node | None = None):
        self.value = value
        self.dtype = np.dtype(dtype)
        self.node = node

    def call(self, fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return call(fn, args, kwargs)


def call(fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Run a function of NumPy or SciPy on balls."""
    found = CALLS.get(fn)
    if found is not None:
        return found(*args, **kwargs)
    for other in OTHERS:
        result = other(fn, args, kwargs)
        if result is not NotImplemented:
            return result
    name = ".".join([name_of(fn[0]), fn[1]]) if isinstance(fn, tuple) else name_of(fn)
    raise UnsupportedOperationError(
        f"{name} has no certified value yet, so what is made of it can't be audited. "
        "Give the true function in other words: reference=lambda x: ..."
    )


def value_of(x: Any) -> Any:
    """The ball or the array of balls that an operand is; numbers are exact."""
    if isinstance(x, Balls):
        return x.value
    if x.__class__ in (int, float):
        return arb(x)
    return x.balls() if isinstance(x, Decisions) else balls_of(x)


class Decisions(ObjectArray):
    """Where something is true, and where it is false; elsewhere it is open."""

    __slots__ = ("dtype", "no", "yes")

    def __init__(self, yes: Any, no: Any) -> None:
        self.yes, self.no = np.asarray(yes, bool), np.asarray(no, bool)
        self.dtype = np.dtype(bool)

    @property
    def value(self) -> Any:
        return self.yes

    @property
    def is_open(self) -> Any:
        return ~(self.yes | self.no)

    def balls(self) -> Any:
        """1 where true, 0 where false, and a ball of both where open."""
        state.notes.masked = True
        y, open_ = np.where(self.yes, arb(1), arb(0)), self.is_open
        return np.where(open_, arb(0.5, 0.5), y) if open_.any() else balls_of(y)

    def astype(self, dtype: Any, **_: Any) -> Any:
        return self if dtype in (bool, np.bool_) else Balls(self.balls())

    def call(self, fn: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return call(fn, args, kwargs)

    def __bool__(self) -> bool:
        if self.yes.size == 1 and (self.yes.all() or self.no.all()):
            return bool(self.yes.all())
        raise UnsupportedOperationError(
            "a definition that is audited decides by np.where, not by `if` on a "
            "comparison, whose elements may differ or be undecided"
        )


def made(value: Any, inputs: Sequence[Any], pulls: Any) -> Balls:
    """A result, recorded: `pulls[i]` takes dy to the cotangent of the i-th input."""
    value = balls_of(value)
    dtype = next((x.dtype for x in inputs if isinstance(x, Balls)), float)
    at = [i for i, x in enumerate(inputs) if isinstance(x, Balls) and x.node]
    if not at:
        return Balls(value, dtype)

    def pull(dy: Any, needs: Any) -> list[Any]:
        dy = dy if dy.__class__ is np.ndarray else balls_of(dy)  # of one element
        return [pulls[i](dy) for i in at]

    return Balls(value, dtype, Node(None, [inputs[i].node for i in at], pull))


def constant(value: Any, like: Any) -> Balls:
    return Balls(value, like.dtype)


def watched(x: Any, dtype: Any) -> Balls:
    """Numbers as exact balls to differentiate by."""
    return Balls(balls_of(x), dtype, Node(None, (), None))


def gradients(y: Balls, dy: Any, xs: Sequence[Balls]) -> list[Any]:
    """The cotangents of xs from that of y, as arrays of balls."""
    if y.node is None:
        return [zeros(x.shape) for x in xs]
    nodes = [x.node for x in xs]
    found = walk_back({y.node: dy}, nodes, keep=False, prune=True)  # type: ignore
    return [
        zeros(x.shape) if found[x.node] is None else found[x.node]  # type: ignore
        for x in xs
    ]


def times(dy: Any, p: Any) -> Any:
    """dy * p, and 0 where dy is: a branch that was not taken has no say."""
    product = balls_of(dy * p)
    if state.notes.masked:
        gone = ~is_finite(product)
        if gone.any():
            gone &= np.equal(np.broadcast_to(dy, gone.shape), 0)
            product = np.where(gone, arb(0), product)
    return product


def is_finite(x: Any) -> Any:
    return np.asarray(_is_finite(x), bool)


_is_finite = each(arb.is_finite)
