"""Arrays that functions captured, and whether arrays have values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import mlx.core as mx
import numpy as np

from ....core.errors import UnsupportedOperationError
from ....core.reach import names_in, reached
from ..._captured import with_captured


def arrays_in(*fns: Any) -> list[Any]:
    """The arrays that functions reach, in closures, globals and objects."""
    return [*reached(*fns, stop=lambda x: isinstance(x, mx.array))]


# From a rule to what it was made of: the pullbacks of ours are functions of functions
DEPTH = 12


def captured_by(fn: Any) -> list[Any]:
    """The arrays in the closure of a function that can be exchanged, each once."""
    found: dict[int, Any] = {}

    def collect(x: Any) -> Any:
        if isinstance(x, mx.array):
            found[id(x)] = x
        return x

    with_captured(fn, collect, DEPTH)
    return [*found.values()]


def is_known(arrays: Sequence[Any]) -> bool:
    """Whether arrays have values: in `mx.grad` they do, in `mx.vmap` they don't."""
    try:
        mx.eval(*arrays)
    except ValueError as error:
        if "[eval]" not in str(error):
            raise
        return False
    return True


def copied(x: Any) -> Any:
    """An array with the same values, which comes from nowhere."""
    wide = x.astype(mx.float32) if x.dtype == mx.bfloat16 else x
    return mx.array(np.array(wide), x.dtype)


def require_known(operation: Any, rules: Sequence[Any]) -> None:
    """Raise if a rule captured an array that is traced, which could not be replaced."""
    captured = arrays_in(*rules)
    if captured and not is_known(captured):
        raise UnsupportedOperationError(
            f"a rule of operation {operation.name!r} captures an array that MLX traces "
            "(mx.compile, mx.vmap)\n"
            "  what to do: make it an argument of the operation"
        )


@contextmanager
def same_random_numbers(what: Any) -> Iterator[None]:
    """Raise if something that is run again draws random numbers: they are others."""
    state: Any = mx.random.state
    key = state[0]
    yield
    keys = [key, state[0]]
    if is_known(keys) and not mx.array_equal(*keys).item():
        name = getattr(what, "name", None) or getattr(what, "__name__", str(what))
        raise UnsupportedOperationError(
            f"{name!r} is run again for its derivative, and draws random numbers from "
            "MLX's global state, which can't be set to what it was\n"
            "  what to do: pass a key to it, and draw with key="
        )


def may_refuse(operation: Any) -> bool:
    """Whether the code of an operation speaks of gradients that don't exist."""
    functions = (operation.fn, operation.vjp_rule)
    codes = [getattr(fn, "__code__", None) for fn in functions]
    return any(
        "not_differentiable" in names_in(code) for code in codes if code is not None
    )
