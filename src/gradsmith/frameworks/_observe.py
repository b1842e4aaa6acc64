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
from ..operations.info import is_floating

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


class Entry(NamedTuple):
    """What was run: `fn(*ins)` gave `outs`; `custom` if it has a rule of its own."""

    fn: Callable[..., Sequence[Any]]
    ins: Sequence[Any]
    outs: Sequence[Any]
    event: Event
    custom: bool = False


class Walk:
    """Takes note of what is run, and goes through it backwards one by one.

    Values are known by their identity. `active` are the arrays to differentiate by;
    without them nothing is kept for the way back. A framework says how arrays are made,
    and how one entry is pulled back.
    """

    ones_like: Callable[[Any], Any]
    zeros_like: Callable[[Any], Any]

    def __init__(
        self, observer: Observer, active: Sequence[Any] = (), phase: str = "forward"
    ) -> None:
        self.observer = observer
        self.phase = phase
        self.entries: list[Entry] = []
        self.active = {id(x) for x in active}
        self.recording = bool(active)

    def is_active(self, x: Any) -> bool:
        return id(x) in self.active and is_floating(x)

    def note(self, entry: Entry) -> None:
        """Report what was run, and keep it for the way back."""
        self.observer.event(entry.event)
        if self.recording and any(map(self.is_active, entry.ins)):
            self.active.update(map(id, entry.outs))
            self.entries.append(entry)

    def pull(self, entry: Entry, fn: Any, xs: Sequence[Any], dys: list[Any]) -> Any:
        """The gradients of `fn(*xs)`, the floating outputs by the active inputs."""
        raise NotImplementedError

    def add(self, dx: Any, other: Any) -> Any:
        return dx + other

    def gradients(self, ys: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
        """The gradients of the sum of ys by xs, None where there is none."""
        self.recording, self.phase = False, "backward"
        cotangents: dict[int, Any] = {}
        for y in filter(self.is_active, ys):
            self._receive(cotangents, y, self.ones_like(y), None)
        for entry in reversed(self.entries):
            outs = [y for y in entry.outs if is_floating(y)]
            if any(id(y) in cotangents for y in outs):
                dys = [
                    cotangents[id(y)] if id(y) in cotangents else self.zeros_like(y)
                    for y in outs
                ]
                moved = [x for x in entry.ins if self.is_active(x)]
                for x, dx in zip(moved, self._pulled(entry, dys), strict=True):
                    self._receive(cotangents, x, dx, entry.event)
        return [cotangents.get(id(x)) for x in xs]

    def _pulled(self, entry: Entry, dys: list[Any]) -> list[Any]:
        """The gradients of the active inputs of what was run."""
        at = [i for i, x in enumerate(entry.ins) if self.is_active(x)]

        def outputs(*xs: Any) -> list[Any]:
            places = dict(zip(at, xs, strict=True))
            ins = [places.get(i, x) for i, x in enumerate(entry.ins)]
            return [y for y in entry.fn(*ins) if is_floating(y)]

        self.observer.enter()
        dxs = [*self.pull(entry, outputs, [entry.ins[i] for i in at], dys)]
        ins = [*operands(dys, id, "dy"), *entry.event.inputs]
        self.observer.event(entry.event.backward(ins, operands(dxs, id, "dx")))
        return dxs

    def _receive(
        self, cotangents: dict[int, Any], x: Any, dx: Any, event: Event | None
    ) -> None:
        before = cotangents.get(id(x))
        if before is not None:
            ins = operands([before, dx], id, "dy")
            dx = self.add(before, dx)
            place, outs = event and event.place, [Operand("dy", dx, id(dx))]
            total = Event(SUM, "backward", place, ins, outs, elementwise=True)
            self.observer.event(total)
        cotangents[id(x)] = dx


Report = Callable[[str, Sequence[Any], Sequence[Any], bool], None]


class ObservedArray(np.ndarray):
    """A NumPy array that reports each function it is given to, by `report`.

    Its views have the same. One class for all: types are remembered in many places.
    """

    report: Report

    def __array_finalize__(self, obj: Any) -> None:
        if isinstance(obj, ObservedArray):
            self.report = obj.report

    def __array_ufunc__(  # type: ignore[override]
        self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        xs = [_plain(x) for x in inputs]
        ys = getattr(ufunc, method)(*xs, **{k: _plain(v) for k, v in kwargs.items()})
        name = f"np.{ufunc.__name__}" + f".{method}" * (method != "__call__")
        self.report(name, xs, trees.leaves(ys), method == "__call__")
        return _observed(ys, self.report)

    def __array_function__(self, fn: Any, types: Any, args: Any, kwargs: Any) -> Any:
        args, kwargs = _plain(args), _plain(kwargs)
        ys = fn(*args, **kwargs)
        self.report(f"np.{fn.__name__}", trees.leaves(args), trees.leaves(ys), False)
        return _observed(ys, self.report)


def _observed(tree: Any, report: Report) -> Any:
    def leaf(x: Any) -> Any:
        if not isinstance(x, (np.ndarray, np.generic)) or x.dtype.kind not in "fc":
            return x
        observed = np.asarray(x).view(ObservedArray)
        observed.report = report
        return observed

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

    def body(proceed: Any, operation: Any, bound: Any) -> Any:
        if common_framework(bound.leaves, operation.name) != NUMPY:
            return proceed(operation, bound)
        observer.enter()
        leaves = [_observed(x, report) for x in bound.leaves]
        outputs, grad = proceed(operation, bound.with_leaves(leaves))
        return _plain(outputs), grad

    def rule(
        proceed: Any, call: Any, what: str, fn: Any, args: Any, kwargs: Any
    ) -> Any:
        args = [_observed(x, report) for x in args]
        return _plain(proceed(call, what, fn, args, _observed(kwargs, report)))

    with hooks.BODY.wrapped(body), hooks.RULE.wrapped(rule):
        yield
