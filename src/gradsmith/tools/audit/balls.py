"""Balls: an array of certified numbers which NumPy's functions compute and record.

A number is a ball of Arb: a midpoint and a radius that encloses the true value, however
it was rounded. The balls lie in an object array, so that NumPy does shapes and loops:
46 ns an addition, while a series of value and derivative takes 570 to make. What is
recorded are true derivatives, from a table of their own: the engine's formulas have
rounded constants and series that end. The nodes and the walk back are the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from ...core.errors import UnsupportedOperationError
from ...core.rule import name_of
from ...core.tape import Node, walk_back
from .arb import arb, balls_of, zeros
from .state import state

# Functions of balls, by the function of NumPy or SciPy that they stand for
CALLS: dict[Any, Callable[..., Any]] = {}
# What is asked for the others
OTHERS: list[Callable[..., Any]] = []


class Balls(NDArrayOperatorsMixin):
    """Certified numbers, and the node that leads back to what they came from.

    `dtype` is that of the numbers which they are the truth of. To operations of ours
    balls are no arrays: the body is given them as they are, and no rule is asked.
    """

    __slots__ = ("dtype", "node", "value")
    __array_priority__ = 2000

    def __init__(self, value: Any, dtype: Any = float, node: Node | None = None):
        self.value = value
        self.dtype = np.dtype(dtype)
        self.node = node

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def size(self) -> int:
        return self.value.size

    def __len__(self) -> int:
        return len(self.value)

    def __repr__(self) -> str:
        return f"Balls({self.value.tolist()})"

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kw: Any) -> Any:
        if method != "__call__":
            ufunc = (ufunc, method)
        return call(ufunc, args, kw)

    def __array_function__(self, fn: Any, types: Any, args: Any, kw: Any) -> Any:
        return call(fn, args, kw)

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise UnsupportedOperationError(
            "certified values can't become a plain NumPy array, which is rounded. "
            "Something in the definition asks for one (np.asarray, float, a function "
            "that is not NumPy's): give the true function with reference=..."
        )


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
    return x.balls() if isinstance(x, Plain) else balls_of(x)


class Plain:
    """What turns into constant balls if it is computed with."""

    __slots__ = ()

    def balls(self) -> Any:
        raise NotImplementedError


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


_is_finite = np.frompyfunc(arb.is_finite, 1, 1)
