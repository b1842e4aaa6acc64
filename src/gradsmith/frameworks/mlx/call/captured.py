"""Arrays that functions captured, and whether arrays have values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import mlx.core as mx

from ....core.errors import UnsupportedOperationError
from ....core.reach import reached
from ..._cells import with_captured


def arrays_in(*fns: Any) -> list[Any]:
    """The arrays that functions reach, in closures, globals and objects."""
    return [*reached(*fns, stop=lambda x: isinstance(x, mx.array))]


def captured_by(fn: Any) -> list[Any]:
    """The arrays in the closure of a function that can be exchanged, each once."""
    found: dict[int, Any] = {}

    def collect(x: Any) -> Any:
        if isinstance(x, mx.array):
            found[id(x)] = x
        return x

    with_captured(fn, collect)
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
def same_random_numbers(operation: Any) -> Iterator[None]:
    """Raise if random numbers are drawn here: a second run would draw others."""
    key = mx.random.state[0]
    yield
    keys = [key, mx.random.state[0]]
    if is_known(keys) and not mx.array_equal(*keys).item():
        raise UnsupportedOperationError(
            f"the body of operation {operation.name!r} captures an array and draws "
            "random numbers\n"
            "  what to do: make the array an argument of the operation, or draw the "
            "numbers with a key= that is one"
        )
