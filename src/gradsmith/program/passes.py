"""Programs made smaller: each pass is a function from a program to an equal one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from ..core.rule import convert
from .graph import Program, Step, Value, comparable, replaced


def simplified(program: Program) -> Program:
    """All passes, one after the other."""
    for apply in (
        without_conversions,
        without_copies,
        without_repetition,
        without_dead,
    ):
        program = apply(program)
    return program


def without_dead(program: Program) -> Program:
    """Leave out steps and constants that no output needs."""
    needed = set(program.results)
    steps = []
    for step in reversed(program.steps):
        if needed.intersection(step.outputs):
            steps.append(step)
            needed.update(step.inputs)
    constants = {x: c for x, c in program.constants.items() if x in needed}
    return replace(program, steps=tuple(reversed(steps)), constants=constants)


def without_repetition(program: Program) -> Program:
    """Compute once what is computed twice, of the same values by the same function.

    Steps are pure: what draws random numbers is no step.
    """
    seen: dict[Any, Step] = {}

    def known(step: Step) -> tuple[Any, ...] | None:
        args = replaced((step.args, step.kwargs), _Numbered())
        key = (step.fn, repr(comparable(args)))
        first = seen.setdefault(key, step) if isinstance(step.fn, Hashable) else step
        return None if first is step else first.outputs

    return _rewritten(program, known)


class _Numbered(dict[Value, Any]):
    """For each value something that no other one has."""

    def get(self, x: Any, default: Any = None) -> Any:
        return ("value", id(x))


def without_copies(program: Program) -> Program:
    """Leave out what changes neither shape nor dtype."""

    def known(step: Step) -> tuple[Any, ...] | None:
        if step.fn not in _SAME or not isinstance(x := step.args[0], Value):
            return None
        y = step.outputs[0]
        return (x,) if x.shape == y.shape and x.dtype == y.dtype else None

    return _rewritten(program, known)


_SAME = (np.reshape, np.broadcast_to, np.ravel, np.squeeze, np.expand_dims, convert)


def without_conversions(program: Program) -> Program:
    """Convert once instead of twice, if the dtype between them holds all numbers."""
    made: dict[Value, Step] = {}
    steps = []
    for step in program.steps:
        first = made.get(step.args[0]) if step.fn is convert else None
        if first is not None and _is_exact(first):
            step = replace(step, args=(first.args[0], step.args[1]))
        if step.fn is convert:
            made[step.outputs[0]] = step
        steps.append(step)
    return replace(program, steps=tuple(steps))


def _is_exact(conversion: Step) -> bool:
    before = conversion.args[0].dtype
    return np.can_cast(before, conversion.outputs[0].dtype, "safe")


def _rewritten(
    program: Program, known: Callable[[Step], tuple[Any, ...] | None]
) -> Program:
    """The steps without those whose outputs are known to be other values."""
    same: dict[Value, Any] = {}
    steps = []
    for step in program.steps:
        args, kwargs = replaced((step.args, step.kwargs), same)
        step = replace(step, args=args, kwargs=kwargs)
        values = known(step)
        if values is None:
            steps.append(step)
        else:
            same.update(zip(step.outputs, values, strict=True))
    outputs = replaced(program.outputs, same)
    return replace(program, steps=tuple(steps), outputs=outputs)
