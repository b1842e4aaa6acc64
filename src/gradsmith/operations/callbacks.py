"""Functions of NumPy arrays as operations of any framework, to any order.

A framework runs the function by a callback and can't see into it. Its derivatives are
therefore found by the embedded engine: they are functions of NumPy arrays again, and
become operations in the same way when a framework asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core.arrays import FRAMEWORKS, common_framework, described
from ..core.cotangent import Spec
from ..core.tensor import unwrap
from .derivatives import Flat, has_tangent, pullback, pushforward
from .operation import Operation
from .trial import try_rule

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


def hosted(
    flat: Flat, arrays: Sequence[Any], find: Callable[[], Sequence[Spec]], name: str
) -> list[Any]:
    """Run a function of NumPy arrays on the arrays of a framework."""

    def run(*plain: Any) -> list[Any]:
        return [np.asarray(unwrap(y)) for y in flat(*plain)]

    framework = common_framework(arrays, f"operation {name!r}")
    return FRAMEWORKS[framework].call.host(run, arrays, Specs(find), name)


def differentiable(flat: Flat, name: str, find: Find, *, trials: bool) -> Operation:
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
        return tuple(hosted(self.flat, arrays, lambda: self.find(arrays), self.name))

    def vjp(self, dy: Any, y: Any, *arrays: Any, needs: Any) -> list[Any]:
        given = [d is not None for d in dy]
        wanted = [
            i
            for i, (x, need) in enumerate(zip(arrays, needs.values(), strict=True))
            if need and has_tangent(_spec(x))
        ]
        pull = self._derived(
            pullback(self.flat, given, wanted, self.name),
            "the gradient",
            lambda given: [_spec(given[i - len(arrays)]) for i in wanted],
        )
        found = pull(*(d for d in dy if d is not None), *arrays)
        by_place = dict(zip(wanted, found, strict=True))
        return [by_place.get(i) for i in range(len(arrays))]

    def jvp(self, dx: Any, y: Any, *arrays: Any) -> tuple[Any, ...]:
        dxs = dx if len(arrays) > 1 else (dx,)
        moved = [
            i
            for i, (x, d) in enumerate(zip(arrays, dxs, strict=True))
            if d is not None and has_tangent(_spec(x))
        ]
        push = self._derived(
            pushforward(self.flat, moved, self.name),
            "the tangent",
            lambda _: [spec for spec in map(_spec, y) if has_tangent(spec)],
        )
        found = iter(push(*(dxs[i] for i in moved), *arrays))
        return tuple(next(found) if has_tangent(_spec(part)) else None for part in y)

    def _derived(self, flat: Flat, what: str, find: Find) -> Operation:
        def tried(arrays: Sequence[Any]) -> Sequence[Spec]:
            if self.trials:
                try_rule(flat, [_spec(x) for x in arrays])
            return find(arrays)

        name = f"{what} of {self.name}"
        return differentiable(flat, name, tried, trials=self.trials)


def _spec(x: Any) -> Spec:
    spec = described(x)
    assert spec is not None
    return spec
