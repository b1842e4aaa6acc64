"""Programs made smaller: each pass is a function from a program to an equal one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ..core.rule import convert
from .graph import Program, Step, Value, comparable, is_uniform, replaced
from .products import with_smaller_products

LARGEST = 64  # elements of what is computed ahead, unless all are equal


def simplified(program: Program) -> Program:
    """All passes, one after the other."""
    for apply in (
        without_defaults,
        without_conversions,
        without_broadcasts,
        with_known_values,
        without_copies,
        without_repetition,
        with_smaller_products,
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


def without_defaults(program: Program) -> Program:
    """Leave out options of reductions that change nothing."""
    steps = [
        replace(
            step, kwargs={k: x for k, x in step.kwargs.items() if not _is_usual(k, x)}
        )
        if step.fn in _REDUCTIONS and step.kwargs
        else step
        for step in program.steps
    ]
    return replace(program, steps=tuple(steps))


_REDUCTIONS = {np.sum, np.prod, np.max, np.min, np.mean}


def _is_usual(name: str, x: Any) -> bool:
    return (name == "dtype" and x is None) or (name == "where" and x is True)


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


def without_broadcasts(program: Program) -> Program:
    """Leave it to elementwise functions to repeat what was repeated for them."""
    made: dict[Value, Step] = {}
    steps = []
    for step in program.steps:
        if step.fn is np.broadcast_to:
            made[step.outputs[0]] = step
        elif made and is_elementwise(step):
            step = _repeating(step, made)
        steps.append(step)
    return replace(program, steps=tuple(steps))


def _repeating(step: Step, made: dict[Value, Step]) -> Step:
    args = list(step.args)
    for i, x in enumerate(args):
        if not isinstance(x, Value) or x not in made:
            continue
        before, args[i] = args[i], made[x].args[0]
        shapes = [a.shape for a in args if isinstance(a, Value)]
        if np.broadcast_shapes(*shapes) != step.outputs[0].shape:
            args[i] = before
    return replace(step, args=tuple(args))


def is_elementwise(step: Step) -> bool:
    """Whether a step is a ufunc's, without options."""
    return isinstance(step.fn, np.ufunc) and not (step.fn.signature or step.kwargs)


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
    before, after = conversion.args[0].dtype, conversion.outputs[0].dtype
    if before.kind in "iu" and after.kind in "fc" and before.itemsize > 4:
        return False  # though NumPy takes it for safe
    return np.can_cast(before, after, "safe")


def with_known_values(program: Program) -> Program:
    """Compute ahead what depends on no input, and leave out products with 1.

    Only what is small, or one number many times: the latter stands as a scalar beside
    arrays that have the result's shape.
    """
    known: dict[Value, Any] = {
        x: array for x, array in program.constants.items() if array.size <= LARGEST
    }
    made: dict[Value, Any] = {}

    def find(step: Step) -> tuple[Any, ...] | None:
        if all(x in known for x in step.inputs) and _is_cheap(step):
            ys = _computed(step, known)
            if all(y.size <= LARGEST or _number(y) is not None for y in ys):
                values = dict(zip(step.outputs, ys, strict=True))
                known.update(values)
                made.update(values)
                return None
        return _unchanged(step, known)

    program = _rewritten(program, find, lambda step: _with_scalars(step, known))
    steps = tuple(s for s in program.steps if made.keys().isdisjoint(s.outputs))
    scalars = {x: y[()] for x, y in made.items() if not y.ndim}
    arrays = {x: y for x, y in made.items() if y.ndim}
    steps, outputs = replaced_in(steps, scalars), replaced(program.outputs, scalars)
    constants = {**program.constants, **arrays}
    return replace(program, steps=steps, outputs=outputs, constants=constants)


def replaced_in(steps: Any, known: dict[Value, Any]) -> tuple[Step, ...]:
    """Steps with what is known of values in their places."""
    if not known:
        return tuple(steps)
    return tuple(
        replace(step, args=args, kwargs=kwargs)
        for step in steps
        for args, kwargs in [replaced((step.args, step.kwargs), known)]
    )


def _is_cheap(step: Step) -> bool:
    """Whether computing it ahead takes next to no time.

    Not what counts elements: kernels count as they go, and take no array for it.
    """
    if step.fn is np.arange:
        return False
    return sum(prod(x.shape) for x in (*step.inputs, *step.outputs)) < 10**7


def _computed(step: Step, known: dict[Value, Any]) -> list[np.ndarray]:
    """The results; of one number many times without the memory for it."""
    if step.fn in (np.zeros, np.ones, np.full):
        dtype = step.outputs[0].dtype
        fill = {np.zeros: 0, np.ones: 1}.get(step.fn, step.args[-1])
        fill = replaced(fill, known)
        if not np.ndim(fill):
            one = np.asarray(fill).astype(dtype)
            return [np.broadcast_to(one, step.outputs[0].shape)]
    args, kwargs = replaced((step.args, step.kwargs), known)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        y = step.fn(*args, **kwargs)
    ys = y if isinstance(y, (tuple, list)) else (y,)
    return [_compact(np.asarray(y)) for y in ys]


def _compact(y: np.ndarray) -> np.ndarray:
    if y.size > LARGEST and is_uniform(y):
        return np.broadcast_to(y.flat[0], y.shape)
    return y


def _number(x: Any) -> Any:
    """The number that an array is many times, if it is."""
    if x is None or not x.size or not is_uniform(x):
        return None
    return x.flat[0]


def _unchanged(step: Step, known: dict[Value, Any]) -> tuple[Any, ...] | None:
    """The argument that a step returns, if it does: all of the others are known."""
    y = step.outputs[0]
    for x, i, number in _NEUTRAL.get(step.fn, ()) if not step.kwargs else ():
        same, other = step.args[x], step.args[i]
        found = _number(known.get(other)) if isinstance(other, Value) else other
        if not isinstance(same, Value) or found is None or np.ndim(found):
            continue
        if found == number and (same.shape, same.dtype) == (y.shape, y.dtype):
            return (same,)
    return None


# What is returned if another argument is this number: by places
_NEUTRAL: dict[Any, tuple[tuple[int, int, Any], ...]] = {
    np.multiply: ((0, 1, 1), (1, 0, 1)),
    np.divide: ((0, 1, 1),),
    np.where: ((2, 0, False), (1, 0, True)),
}


def _with_scalars(step: Step, known: dict[Value, Any]) -> Step:
    """A number instead of an array of it, where another argument gives the shape."""
    if not is_elementwise(step) or step.fn.nout > 1:
        return step
    y, args = step.outputs[0], list(step.args)
    for i, x in enumerate(args):
        others = [a for j, a in enumerate(args) if j != i and isinstance(a, Value)]
        number = _number(known.get(x)) if isinstance(x, Value) else None
        if number is not None and any(a.shape == y.shape for a in others):
            args[i] = number
    return replace(step, args=tuple(args))


def _rewritten(
    program: Program,
    known: Callable[[Step], tuple[Any, ...] | None],
    changed: Callable[[Step], Step] = lambda step: step,
) -> Program:
    """The steps without those whose outputs are known to be other values."""
    same: dict[Value, Any] = {}
    steps = []
    for step in program.steps:
        args, kwargs = replaced((step.args, step.kwargs), same)
        step = changed(replace(step, args=args, kwargs=kwargs))
        values = known(step)
        if values is None:
            steps.append(step)
        else:
            same.update(zip(step.outputs, values, strict=True))
    outputs = replaced(program.outputs, same)
    return replace(program, steps=tuple(steps), outputs=outputs)
