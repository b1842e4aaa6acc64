"""The state of a scan: a tree of arrays that keeps its structure, shapes and dtypes."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import trees
from ...core.arrays import described, framework_of, same_shape
from ...core.errors import GradsmithError

Step = Callable[..., Any]


class Like:
    """What every state must be like: the first one."""

    def __init__(self, state: Any) -> None:
        self.tree = trees.map(lambda x: None, state)
        self.names, self.specs = [], []
        for name, x in trees.leaves_with_names(state, "state"):
            if framework_of(x) is None and not isinstance(x, np.generic):
                raise GradsmithError(
                    f"checkpoint_scan: {name} is a {type(x).__name__}\n"
                    "  expected: arrays (in tuples, lists, dicts, dataclasses)\n"
                    "  what to do: np.asarray(...) makes a number an array; let the "
                    "step capture what stays the same"
                )
            self.names.append(name)
            self.specs.append(described(x))
        if not self.names:
            raise GradsmithError(
                f"checkpoint_scan: the state {state!r} has no arrays in it\n"
                "  expected: at least one, which the step carries on"
            )

    def flat(self, state: Any, i: int) -> list[Any]:
        """The leaves of the state that step i returned, if it is as it must be."""
        flat: list[Any] = []
        try:
            trees.map(lambda _, x: flat.append(x), self.tree, state)
        except GradsmithError:
            flat.clear()
        if not flat or not all(map(trees.is_leaf, flat)):
            shapes = trees.shape_of(self.tree), trees.shape_of(state)
            raise self._error(i, "the structure", "the state", *shapes)
        for name, spec, x in zip(self.names, self.specs, flat, strict=True):
            if not spec.describes(x):
                self._require_like(name, spec, x, i)
        return flat

    def _require_like(self, name: str, spec: Any, x: Any, i: int) -> None:
        got = described(x)
        if got is None:
            raise self._error(i, "what is an array", name, _words(spec), _words(x))
        if not same_shape(got.shape, spec.shape):
            raise self._error(i, "the shape", name, _words(spec), _words(got))
        if got.dtype != spec.dtype:
            raise self._error(i, "the dtype", name, _words(spec), _words(got))

    def _error(self, i: int, what: str, name: str, expected: Any, got: Any) -> Any:
        return GradsmithError(
            f"checkpoint_scan: step {i} changes {what} of {name}\n"
            f"  expected: {expected}\n"
            f"  got: {got}\n"
            "  what to do: return a state like the one that the step was given; cast "
            "or reshape before the scan, and take results out of it after"
        )

    def rebuilt(self, flat: list[Any]) -> Any:
        return trees.unflatten(self.tree, flat)


def _words(x: Any) -> str:
    shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
    return type(x).__name__ if dtype is None else f"shape {shape}, {dtype}"


def size_of(state: Any) -> int:
    """The bytes of a state."""
    total = 0
    for x in trees.leaves(state):
        size = getattr(x, "nbytes", None)
        if size is None:  # TensorFlow's
            if None in (x.shape.rank, *(x.shape.as_list() if x.shape.rank else ())):
                raise GradsmithError(
                    "budget= wants states of known shape, and TensorFlow leaves "
                    f"{x.shape} open here\n  what to do: snapshots=..."
                )
            size = x.shape.num_elements() * x.dtype.size
        total += int(size)
    return total


def takes_number(step: Step) -> bool:
    """Whether a step wants `step(state, i)`."""
    try:
        parameters = inspect.signature(step).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [p for p in parameters if p.default is p.empty and p.kind in _POSITIONAL]
    return len(needed) > 1


_POSITIONAL = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)
