"""Functions of NumPy arrays as operations of any framework, to any order.

A framework runs the function by a callback and can't see into it. Its derivatives are
therefore found by the embedded engine: they are functions of NumPy arrays again, and
become operations in the same way when a framework asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ..core.arrays import FRAMEWORKS, common_framework, described
from ..core.cotangent import Spec, cast
from ..core.errors import UnsupportedOperationError, annotate
from ..core.forward import ForwardAccumulator
from ..core.gradient_tape import GradientTape
from ..core.tape import Traced
from ..core.tensor import readonly, unwrap, wrap
from .buffers import own
from .operation import Operation
from .trial import try_rule

Flat = Callable[..., Sequence[Any]]
Find = Callable[[Sequence[Any]], Sequence[Spec]]  # what the outputs will be


class Specs(Sequence[Spec]):
    """What a function will return, found out when a framework wants to know it.

    Where the function is run at once, nobody asks.
    """

    def __init__(self, find: Callable[[], Sequence[Spec]]) -> None:
        self._find = find
        self._found: Sequence[Spec] | None = None

    @property
    def _specs(self) -> Sequence[Spec]:
        if self._found is None:
            self._found = self._find()
        return self._found

    def __getitem__(self, i: Any) -> Any:
        return self._specs[i]

    def __len__(self) -> int:
        return len(self._specs)

    def __iter__(self) -> Iterator[Spec]:
        return iter(self._specs)


def call_back(
    flat: Flat, arrays: Sequence[Any], find: Callable[[], Sequence[Spec]], name: str
) -> list[Any]:
    """Run a function of NumPy arrays on the arrays of a framework."""

    def run(*plain: Any) -> list[Any]:
        found = list(flat(*map(readonly, plain)))  # their memory is the framework's
        return [own(np.asarray(unwrap(found.pop(0)))) for _ in range(len(found))]

    framework = common_framework(arrays, f"operation {name!r}")
    return FRAMEWORKS[framework].call.host(run, arrays, Specs(find), name)


def differentiable(
    flat: Flat, name: str, find: Find, *, trials: bool
) -> Operation[..., Any]:
    """A function of NumPy arrays as an operation; `find(arrays)` tells its outputs.

    The function must compute in NumPy's calls, so that the engine can follow it, if a
    derivative is asked for. With `trials` that is tried before anything is compiled.
    """
    function = _Function(flat, name, find, trials)

    def body(*arrays: Any) -> Any:
        return function.run(arrays)

    body.__name__ = name
    operation = Operation(body, closure=False)
    operation.hosted = True
    operation.vjp(function.vjp)
    operation.jvp(function.jvp)
    return operation


class _Function:
    """A function of NumPy arrays, and how operations are made of its derivatives."""

    def __init__(self, flat: Flat, name: str, find: Find, trials: bool) -> None:
        self.flat = flat
        self.name = name
        self.find = find
        self.trials = trials

    def run(self, arrays: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(call_back(self.flat, arrays, lambda: self.find(arrays), self.name))

    def vjp(self, dy: Any, y: Any, *arrays: Any, needs: Any) -> list[Any]:
        given = [d is not None for d in dy]
        wanted = [
            i
            for i, (x, need) in enumerate(zip(arrays, needs.values(), strict=True))
            if need and has_tangent(array_spec(x))
        ]
        pull = self._derived(
            pullback(self.flat, given, wanted, self.name),
            "the gradient",
            lambda given: [array_spec(given[i - len(arrays)]) for i in wanted],
        )
        found = pull(*(d for d in dy if d is not None), *arrays)
        by_place = dict(zip(wanted, found, strict=True))
        return [by_place.get(i) for i in range(len(arrays))]

    def jvp(self, dx: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        dxs = dx if len(arrays) > 1 else (dx,)
        moved = [
            i
            for i, (x, d) in enumerate(zip(arrays, dxs, strict=True))
            if d is not None and has_tangent(array_spec(x))
        ]
        push = self._derived(
            pushforward(self.flat, moved, self.name),
            "the tangent",
            lambda _: [spec for spec in map(array_spec, y) if has_tangent(spec)],
        )
        found = iter(push(*(dxs[i] for i in moved), *arrays))
        return tuple(
            next(found) if has_tangent(array_spec(part)) else None for part in y
        )

    def _derived(self, flat: Flat, what: str, find: Find) -> Operation[..., Any]:
        def tried(arrays: Sequence[Any]) -> Sequence[Spec]:
            if self.trials:
                try_rule(flat, [array_spec(x) for x in arrays])
            return find(arrays)

        name = f"{what} of {self.name}"
        return differentiable(flat, name, tried, trials=self.trials)


def array_spec(x: Any) -> Spec:
    spec = described(x)
    assert spec is not None
    return spec


def has_tangent(spec: Any) -> bool:
    return spec.dtype.kind in "fcV"


# The derivatives of a function of NumPy arrays, by the engine


def pullback(
    flat: Flat, given: Sequence[bool], wanted: Sequence[int], name: str
) -> Flat:
    """The function of cotangents and arrays that gives the gradients of some arrays."""
    count = sum(given)

    def pull(*arrays: Any) -> list[Any]:
        dys, xs = arrays[:count], [*arrays[count:]]
        for i in wanted:
            xs[i] = _tensor(xs[i], name)
        with GradientTape(watch_accessed_variables=False) as tape, _noting(name):
            tape.watch([xs[i] for i in wanted])
            ys = flat(*xs)
        ys = [y for y, has in zip(ys, given, strict=True) if has]
        dxs: list[Any] = [None] * len(wanted)
        pairs = zip(ys, dys, strict=True)
        followed = [(y, dy) for y, dy in pairs if isinstance(y, Traced)]
        if followed:
            dxs = tape.gradient(
                [y for y, _ in followed],
                [xs[i] for i in wanted],
                [dy for _, dy in followed],
                unconnected_gradients="zero",
            )
        pairs = zip(wanted, dxs, strict=True)
        return [_zeros(xs[i]) if dx is None else dx for i, dx in pairs]

    return pull


def pushforward(flat: Flat, moved: Sequence[int], name: str) -> Flat:
    """The function of tangents and arrays that gives the tangents of the results."""

    def push(*arrays: Any) -> list[Any]:
        dxs, xs = arrays[: len(moved)], [*arrays[len(moved) :]]
        for i in moved:
            xs[i] = _tensor(xs[i], name)
        pairs = zip(moved, dxs, strict=True)
        dxs = [_tensor(cast(dx, xs[i].dtype), name) for i, dx in pairs]
        primals = [xs[i] for i in moved]
        with ForwardAccumulator(primals, dxs) as accumulator, _noting(name):
            ys = flat(*xs)
        return [
            accumulator.jvp(y, unconnected_gradients="zero")
            if isinstance(y, Traced)
            else _zeros(y)
            for y in ys
            if has_tangent(y)
        ]

    return push


def _tensor(x: Any, name: str) -> Any:
    """A new tensor, so that each is followed by its own place."""
    if x.dtype.kind == "V":
        raise UnsupportedOperationError(
            f"{name} is being differentiated in {x.dtype}, which NumPy can't do: give "
            "the operation float32 or float64, and convert what it returns"
        )
    copied: Any = np.positive
    return copied(x) if isinstance(x, Traced) else wrap(x)


def _zeros(x: Any) -> Any:
    return np.zeros(x.shape, x.dtype)


def _noting(name: str) -> AbstractContextManager[None]:
    return annotate(
        f"{name} is being differentiated, and the engine can't trace all of it. Write "
        "the rule in NumPy's functions, or make the part that is not one (SciPy, C) an "
        "operation of its own, with gs.python_op."
    )
