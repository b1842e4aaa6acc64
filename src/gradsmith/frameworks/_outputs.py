"""The outputs of a body: its arrays flat, and how they are put back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..core import trees
from ..core.errors import UnsupportedOperationError


def refuse_numpy(y: Any, operation: str, framework: str) -> None:
    """Raise if an output is NumPy's, through which no framework differentiates."""
    if isinstance(y, (np.ndarray, np.generic)) and y.dtype.kind in "fc":
        raise UnsupportedOperationError(
            f"the body of operation {operation!r} was given arrays of {framework} and "
            f"returned one of NumPy ({type(y).__name__}), through which {framework} "
            "can't differentiate\n"
            f"  what to do: compute with {framework} or gradsmith.numpy, or, if it is "
            "NumPy or SciPy code, make the operation with gs.python_op"
        )


class _Place:
    """In a template of outputs: an array comes here."""


_PLACE = _Place()


def flattened(outputs: Any, as_array: Callable[[Any], Any]) -> tuple[list[Any], Any]:
    """The arrays in outputs, and the outputs with places for them.

    `as_array` gives the array of a leaf, None if it stays what it is.
    """
    whole = as_array(outputs)  # the usual case
    if whole is not None:
        return [whole], _PLACE
    ys: list[Any] = []

    def place(leaf: Any) -> Any:
        y = as_array(leaf)
        if y is None:
            return leaf
        ys.append(y)
        return _PLACE

    return ys, trees.map(place, outputs)


_KEEP: Any = object()


def rebuilt(template: Any, ys: Sequence[Any], static: Any = _KEEP) -> Any:
    """Outputs from their template and arrays; `static` replaces what is no array."""
    if template is _PLACE:
        return ys[0]
    rest = iter(ys)

    def fill(leaf: Any) -> Any:
        if leaf is _PLACE:
            return next(rest)
        return leaf if static is _KEEP else static

    return trees.map(fill, template)
