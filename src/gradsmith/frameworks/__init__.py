"""Where an operation runs: one adapter for each framework, chosen by the arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from .._errors import UnsupportedOperationError
from .._tape import Traced
from . import numpy as _numpy


class Adapter(Protocol):
    """Runs an operation on the arrays of one framework."""

    def call(self, operation: Any, bound: Any) -> Any: ...


_FOREIGN = {"torch": "PyTorch", "jax": "JAX", "jaxlib": "JAX", "tensorflow": "TensorFlow"}


def is_array(leaf: Any) -> bool:
    """Whether an argument counts as an array; all else is static."""
    if isinstance(leaf, (Traced, np.ndarray)):
        return True
    if isinstance(leaf, np.generic):
        return leaf.dtype.kind in "fc"
    return _framework(leaf) is not None and hasattr(leaf, "shape")


def _framework(leaf: Any) -> str | None:
    return _FOREIGN.get(type(leaf).__module__.partition(".")[0])


def adapter_of(leaves: Sequence[Any], operation: str) -> Adapter:
    """The adapter of the framework that these arrays belong to."""
    for leaf in leaves:
        framework = _framework(leaf)
        if framework:
            raise UnsupportedOperationError(
                f"operation {operation!r} was given a {framework} array "
                f"({type(leaf).__name__}). This version runs operations on NumPy "
                "arrays and gs.Tensor; convert it first."
            )
    return _numpy
