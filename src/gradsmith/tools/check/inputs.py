"""What an operation is checked on: the arrays given, or those of specs and examples.

Lengths that a spec leaves open are small and distinct (3, 4, 5, ...), so that a
mistaken axis shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from ...core import trees
from ...core.arrays import is_array
from ...core.cotangent import Spec
from ...core.errors import GradsmithError, annotate
from ...operations.examples import Example, examples_of
from ...operations.info import is_floating, name_of
from .._inputs import require_operation
from .numerics import Bounds

EDGE = 1 / 8  # how far from a bound values stay, so that differences stay inside
INTEGERS = 3  # without bounds 0, 1 or 2, which are places on any axis of open length


@dataclass(frozen=True)
class CheckInputs:
    """The arguments of one check.

    `bounds` are those of the floating-point arrays, in their order: other inputs that
    are derived from these stay within them.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    bounds: tuple[Bounds, ...]
    name: str = ""  # of the example


def inputs_for(op: Any, args: Any, kwargs: Any, *, seed: int) -> list[CheckInputs]:
    """The arguments with arrays in place of specs; those of the examples, if absent."""
    if args or any(_is_input(x) for x in trees.leaves(kwargs)):
        return [_made(tuple(args), kwargs, seed)]
    require_operation(op, "check()")
    examples = examples_of(op)
    if not examples:
        raise _nothing_given(op)
    names = _names(examples)
    return [
        _of_example(op, make, name, kwargs, seed)
        for make, name in zip(examples, names, strict=True)
    ]


def _is_input(x: Any) -> bool:
    return isinstance(x, Spec) or is_array(x) or is_floating(x)


def _nothing_given(op: Any) -> GradsmithError:
    name = name_of(op)
    return GradsmithError(
        f"check({name}) needs inputs, and {name} has no examples\n  what to do: pass "
        f'arrays or specs, such as check({name}, gs.spec("n 3")), or add an example: '
        f"@{name}.example (@gs.example({name}) if it is a framework's own)"
    )


# --- examples


def _names(examples: list[Example]) -> list[str]:
    """What the examples are called in a report; nothing if there is only one."""
    if len(examples) == 1:
        return [""]
    own = [getattr(make, "__name__", "_").strip("_") for make in examples]
    return [
        name if name.isidentifier() and own.count(name) == 1 else f"example {i}"
        for i, name in enumerate(own, start=1)
    ]


def _of_example(
    op: Any, make: Example, name: str, kwargs: Any, seed: int
) -> CheckInputs:
    with annotate(f"raised by an example of {name_of(op)!r}"):
        made = make()
    if isinstance(made, dict):
        return _made((), {**made, **kwargs}, seed, name)
    args = tuple(made) if type(made) is tuple else (made,)
    return _made(args, kwargs, seed, name)


# --- specs


def _made(args: Any, kwargs: Any, seed: int, name: str = "") -> CheckInputs:
    leaves = trees.leaves((args, kwargs))
    specs = [x for x in leaves if isinstance(x, Spec)]
    made = iter(from_specs(specs, seed)) if specs else iter(())
    args, kwargs = trees.map(
        lambda x: next(made) if isinstance(x, Spec) else x, (args, kwargs)
    )
    bounds = [bounds_of(x) for x in leaves if isinstance(x, Spec) or is_array(x)]
    floating = [x for x in trees.leaves((args, kwargs)) if is_array(x)]
    pairs = zip(floating, bounds, strict=True)
    return CheckInputs(args, kwargs, tuple(b for x, b in pairs if is_floating(x)), name)


def from_specs(specs: list[Spec], seed: int) -> list[np.ndarray]:
    """One array for each spec; the same name is the same length in all of them."""
    lengths = _free_lengths(specs)
    named: dict[str, int] = {}

    def length(axis: int | str | None) -> int:
        if isinstance(axis, str):
            if axis not in named:
                named[axis] = next(lengths)
            return named[axis]
        return next(lengths) if axis is None else axis

    shapes = [tuple(map(length, _axes(spec))) for spec in specs]
    return [
        values(spec, shape, np.random.default_rng([seed, i]))
        for i, (spec, shape) in enumerate(zip(specs, shapes, strict=True))
    ]


def _axes(spec: Spec) -> tuple[Any, ...]:
    if spec.shape is None:
        raise GradsmithError(
            "the spec of an input needs a number of axes: gs.spec((None, None)) or "
            'gs.spec("m n"), not gs.spec(None)'
        )
    return getattr(spec, "axes", spec.shape)


def _free_lengths(specs: list[Spec]) -> Iterator[int]:
    taken = {n for spec in specs for n in _axes(spec)}
    return (n for n in count(3) if n not in taken)


def bounds_of(x: Any) -> Bounds:
    return getattr(x, "low", None), getattr(x, "high", None)


def values(spec: Spec, shape: Any, random: np.random.Generator) -> np.ndarray:
    """Random values within the bounds."""
    low, high = bounds_of(spec)
    kind = spec.dtype.kind
    if kind == "b":
        return random.random(shape) < 0.5
    if kind in "iu":
        return random.integers(*_integer_ends(low, high), shape, endpoint=True).astype(
            spec.dtype
        )
    if kind == "c":
        x = random.normal(size=(*shape, 2))
        return (x[..., 0] + 1j * x[..., 1]).astype(spec.dtype)
    return np.asarray(_between(low, high, shape, random), spec.dtype)


def _integer_ends(low: float | None, high: float | None) -> tuple[int, int]:
    if low is None:
        low = 0 if high is None or high >= 0 else high - INTEGERS + 1
    return int(np.ceil(low)), int(low + INTEGERS - 1 if high is None else high)


def _between(low: Any, high: Any, shape: Any, random: np.random.Generator) -> Any:
    if low is not None and high is not None:
        margin = EDGE * (high - low)
        return random.uniform(low + margin, high - margin, shape)
    x = random.normal(size=shape)
    if low is not None:
        return low + EDGE + np.abs(x)
    return x if high is None else high - EDGE - np.abs(x)
