"""What a scan is to do, whatever arrays it is done on."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core import trees
from ...core.arrays import described, framework_of, same_shape
from ...core.errors import GradsmithError, type_of
from ...frameworks._recompute import Action, Block, name_of
from .schedule import Piece, actions, pieces

Step = Callable[..., Any]


class Plan:
    """The steps of a scan, on the leaves of its state, and how many to store."""

    def __init__(
        self,
        step: Step,
        state: Any,
        steps: int,
        *,
        rows: Sequence[Any] | None,
        ram: int,
        disk: int,
        folder: str | None,
    ) -> None:
        self.step = step
        self.name = name_of(step)
        self.states = States(state)
        self.start = trees.leaves(state)
        self.steps = steps
        self.ram, self.disk, self.folder = ram, disk, folder
        self.rows = range(steps) if rows is None and takes_number(step) else rows

    def take(self, leaves: list[Any], i: int) -> list[Any]:
        """One step."""
        state = self.states.rebuilt(leaves)
        more = () if self.rows is None else (self.rows[i],)
        try:
            state = self.step(state, *more)
        except Exception as error:
            error.add_note(f"in step {i} of {self.steps} of a checkpoint_scan")
            raise
        return self.states.flat(state, i)

    def in_turn(self) -> list[Any]:
        leaves = self.start
        for i in range(self.steps):
            leaves = self.take(leaves, i)
        return leaves

    def actions(self) -> tuple[Action, ...]:
        return actions(self.steps, self.ram, self.disk)

    def in_blocks(self, block: Block) -> list[Any]:
        """All steps; `block(leaves, inner)` is `inner(leaves)`, checkpointed."""

        def run(leaves: list[Any], body: Sequence[Piece]) -> list[Any]:
            for piece in body:
                if piece.body:
                    inner = lambda leaves, body=piece.body: run(leaves, body)
                    leaves = block(leaves, inner)
                else:
                    leaves = self.take(leaves, piece.start)
            return leaves

        return run(self.start, pieces(self.steps, self.ram))


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


class States:
    """What every state must be like: the first one."""

    def __init__(self, state: Any) -> None:
        self.tree = trees.map(lambda x: None, state)
        self.names, self.specs = [], []
        for name, x in trees.leaves_with_names(state, "state"):
            if framework_of(x) is None and not isinstance(x, np.generic):
                raise GradsmithError(
                    f"checkpoint_scan: {name} is {type_of(x)}\n"
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
        spec = described(x)
        if spec is None or spec.shape is None or None in spec.shape:
            raise GradsmithError(
                f"budget= needs states of known shape, and {x.shape} is open here\n"
                "  what to do: snapshots=..."
            )
        total += spec.size * spec.dtype.itemsize
    return total
