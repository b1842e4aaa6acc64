"""NumPy functions of MLX's arrays, where these have values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....core.cotangent import Spec
from ....core.errors import UnsupportedOperationError
from .. import arrays as own
from .captured import is_known


def host(
    fn: Callable[..., Sequence[Any]],
    arrays: Sequence[Any],
    specs: Sequence[Spec],
    name: str,
) -> list[Any]:
    """Run a function of NumPy arrays; nothing is differentiated here.

    MLX has no callback: compiled and mapped code can't come back to Python.
    """
    if not is_known(arrays):
        raise UnsupportedOperationError(
            f"operation {name!r} computes in NumPy, and MLX traces this call without "
            "values (mx.compile, mx.vmap): it has no callback into Python\n"
            "  what to do: call it outside mx.compile and mx.vmap; mx.grad, mx.vjp, "
            "mx.jvp and mx.checkpoint are fine"
        )
    return [own.array(y) for y in fn(*map(own.numpy, arrays))]
