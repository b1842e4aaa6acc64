"""What is observed of a function that runs: events, for whoever wants to know.

The part `observe` of each framework runs a function and its backward pass, and reports
each operation to an observer as an `Event`. Bodies and rules of our operations that run
on NumPy arrays, in a callback of any framework too, are observed here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..core import hooks, trees
from ..core.arrays import NUMPY, common_framework
from ..core.places import Place, place_here
from ..core.tensor import unwrap

# What an event is called that adds gradients, which is no operation of the user's
SUM = "the sum of the gradients of a value that is used more than once"


class Operand(NamedTuple):
    """An input or output: its name in a message, the array, and a key of its value.

    The same value has the same key wherever it is seen, as long as the array is alive.
    """

    name: str
    x: Any
    key: Hashable


def operands(
    xs: Iterable[Any], key: Callable[[Any], Hashable], name: str
) -> list[Operand]:
    """Arrays under one name, with numbers if there are several.

    >>> [each.name for each in operands([1.0, 2.0], id, "x")]
    ['x1', 'x2']
    """
    xs = list(xs)
    names = [name] if len(xs) == 1 else [f"{name}{i + 1}" for i in range(len(xs))]
    return [Operand(n, x, key(x)) for n, x in zip(names, xs, strict=True)]


@dataclass
class Event:
    """An operation was run.

    In the backward pass it is the gradient of an operation: cotangents `dy` and what
    was kept go in, cotangents `dx` come out.
    """

    operation: str
    phase: str  # "forward", "backward"
    place: Place | None
    inputs: Sequence[Operand]
    outputs: Sequence[Operand]
    elementwise: bool = False  # y[i] depends on x[i] alone
    selects: bool = False  # takes from one branch or another, like where
    encloses: bool = False  # the events since `Observer.enter` were parts of it

    def backward(self, inputs: Sequence[Operand], outputs: Sequence[Operand]) -> Event:
        """The gradient of this operation, which encloses the lines of its rule."""
        return replace(
            self, phase="backward", inputs=inputs, outputs=outputs, encloses=True
        )


class Observer(Protocol):
    """Who is told, in the order in which things happen."""

    def argument(self, operand: Operand) -> None:
        """An argument that the function is differentiated by."""
        ...

    def enter(self) -> None:
        """What follows is inside the next event that encloses others."""
        ...

    def event(self, event: Event) -> None:
        """An operation was run."""
        ...

    def outputs(self, outputs: Sequence[Operand]) -> bool:
        """The function has returned; whether to go on with the backward pass."""
        ...


class ObservedArray(np.ndarray):
    """A NumPy array that reports each function it is given to, by `report`."""

    report: Callable[[str, Sequence[Any], Sequence[Any], bool], None]

    def __array_ufunc__(  # type: ignore[override]
        self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        xs = [_plain(x) for x in inputs]
        ys = getattr(ufunc, method)(*xs, **{k: _plain(v) for k, v in kwargs.items()})
        name = f"np.{ufunc.__name__}" + f".{method}" * (method != "__call__")
        self.report(name, xs, trees.leaves(ys), method == "__call__")
        return _observed(ys, type(self))

    def __array_function__(self, fn: Any, types: Any, args: Any, kwargs: Any) -> Any:
        args, kwargs = _plain(args), _plain(kwargs)
        ys = fn(*args, **kwargs)
        self.report(f"np.{fn.__name__}", trees.leaves(args), trees.leaves(ys), False)
        return _observed(ys, type(self))


def _observed(tree: Any, cls: type[ObservedArray]) -> Any:
    def leaf(x: Any) -> Any:
        floating = isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "fc"
        return np.asarray(x).view(cls) if floating else x

    return trees.map(leaf, tree)


def _plain(tree: Any) -> Any:
    def leaf(x: Any) -> Any:
        return x.view(np.ndarray) if isinstance(x, ObservedArray) else x

    return trees.map(leaf, tree)


def numpy_key(x: Any) -> Hashable:
    """The key of a NumPy array or a tensor of the engine; views have the same."""
    x = unwrap(x)
    if isinstance(x, np.ndarray):
        return (x.__array_interface__["data"][0], x.shape)
    return id(x)


@contextmanager
def inside_operations(observer: Observer, phase: Callable[[], str]) -> Iterator[None]:
    """Observe each line of the bodies and rules that run on NumPy arrays.

    `phase` tells which pass is running.
    """

    def report(name: str, xs: Sequence[Any], ys: Sequence[Any], each: bool) -> None:
        numbers = [x for x in xs if isinstance(x, (np.ndarray, np.generic, float))]
        inputs, outputs = (
            operands(numbers, numpy_key, "x"),
            operands(ys, numpy_key, "y"),
        )
        event = Event(name, phase(), place_here(), inputs, outputs, elementwise=each)
        observer.event(event)

    cls = type("ObservedArray", (ObservedArray,), {"report": staticmethod(report)})

    def body(proceed: Any, operation: Any, bound: Any) -> Any:
        if common_framework(bound.leaves, operation.name) != NUMPY:
            return proceed(operation, bound)
        observer.enter()
        leaves = [_observed(x, cls) for x in bound.leaves]
        outputs, grad = proceed(operation, bound.with_leaves(leaves))
        return _plain(outputs), grad

    def rule(
        proceed: Any, call: Any, what: str, fn: Any, args: Any, kwargs: Any
    ) -> Any:
        args = [_observed(x, cls) for x in args]
        return _plain(proceed(call, what, fn, args, _observed(kwargs, cls)))

    with hooks.BODY.wrapped(body), hooks.RULE.wrapped(rule):
        yield
