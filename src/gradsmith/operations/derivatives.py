"""The derivatives of functions of NumPy arrays, by the engine.

They are functions of NumPy arrays again, so that their own are found in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core.cotangent import cast
from ..core.errors import UnsupportedOperationError
from ..core.forward import ForwardAccumulator
from ..core.gradient_tape import GradientTape
from ..core.tape import Traced
from ..core.tensor import wrap

Flat = Callable[..., Sequence[Any]]


def has_tangent(spec: Any) -> bool:
    return spec.dtype.kind in "fcV"


def pullback(
    flat: Flat, given: Sequence[bool], wanted: Sequence[int], name: str
) -> Flat:
    """The function of cotangents and arrays that gives the gradients of some arrays."""
    count = sum(given)

    def pull(*arrays: Any) -> list[Any]:
        dys, xs = arrays[:count], [*arrays[count:]]
        for i in wanted:
            xs[i] = _tensor(xs[i], name)
        with GradientTape(watch_accessed_variables=False) as tape:
            tape.watch([xs[i] for i in wanted])
            ys = flat(*xs)
        _refuse_departures(tape, name)
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
        with ForwardAccumulator([xs[i] for i in moved], dxs) as accumulator:
            ys = flat(*xs)
        _refuse_departures(accumulator, name)
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


def _refuse_departures(recorder: Any, name: str) -> None:
    departures = recorder.losses.departures()
    if departures:
        places = "".join(f"\n  {loss}" for loss in departures)
        raise UnsupportedOperationError(
            f"{name} is being differentiated, and the engine can't see all of it:"
            f"{places}\nWrite the rule in NumPy's functions, or make the part that is "
            "not one (SciPy, C) an operation of its own, with gs.python_op."
        )
