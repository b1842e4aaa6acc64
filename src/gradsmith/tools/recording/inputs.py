"""The inputs of a check: those that were seen, random ones where none had values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...core import trees
from ...core.arrays import FRAMEWORKS
from ...frameworks._recording import Seen
from ...operations.info import is_floating
from .recorder import Case, Recorded

_UNKNOWN = 3  # the length of an axis that is not known
_KNOWN = ("float16", "float32", "float64")

# Most operations are defined everywhere; some for positive numbers, some below 1.
_DRAWS: tuple[Callable[[np.random.Generator, Any], np.ndarray], ...] = (
    lambda random, shape: random.normal(size=shape),
    lambda random, shape: random.uniform(0.1, 0.9, shape),
    lambda random, shape: random.uniform(1.1, 3.0, shape),
)


class InputsError(Exception):
    """No inputs could be made."""


def given(op: Any, case: Case, entry: Recorded, seed: int) -> Any:
    """The arguments to check an operation with."""
    if all(x.value is not None for x in case.arrays):
        return _filled(case, lambda seen: seen.value)
    tries = list(_tries(case, entry, seed))
    return next((inputs for inputs in tries if _is_finite(op, inputs, entry)), tries[0])


def _tries(case: Case, entry: Recorded, seed: int) -> Iterator[Any]:
    name = f"{entry.definition.module}.{entry.definition.name}"
    for draw in _DRAWS:
        random = np.random.default_rng([seed, *name.encode()])
        yield _filled(case, lambda seen: _value(seen, random, draw))  # noqa: B023


def _filled(case: Case, value: Callable[[Seen], Any]) -> Any:
    return trees.map(lambda x: value(x) if isinstance(x, Seen) else x, case.inputs)


def _value(seen: Seen, random: np.random.Generator, draw: Any) -> Any:
    if seen.value is not None:
        return seen.value
    shape = tuple(_UNKNOWN if n is None else n for n in seen.shape)
    kind = seen.dtype.rstrip("0123456789_")
    if kind in ("float", "bfloat"):
        x = draw(random, shape)
        # NumPy has no bfloat16; what is checked first is float64 anyway
        return x.astype(seen.dtype if seen.dtype in _KNOWN else np.float32)
    if kind == "complex":
        return (draw(random, shape) + 1j * draw(random, shape)).astype(seen.dtype)
    if kind == "bool":
        return random.integers(2, size=shape).astype(bool)
    if kind in ("int", "uint"):
        return np.zeros(shape, seen.dtype)  # as an index, zero is always there
    raise InputsError(f"no random values can be made of {seen}")


def _is_finite(op: Any, inputs: Any, entry: Recorded) -> bool:
    arrays = FRAMEWORKS[entry.framework].arrays

    def array(x: Any) -> Any:
        return arrays.array(x, str(x.dtype)) if isinstance(x, np.ndarray) else x

    call = getattr(op, "apply", op)
    with np.errstate(all="ignore"):
        args, kwargs = trees.map(array, inputs)
        ys = [y for y in trees.leaves(call(*args, **kwargs)) if is_floating(y)]
        return all(np.isfinite(arrays.numpy(y)).all() for y in ys)
