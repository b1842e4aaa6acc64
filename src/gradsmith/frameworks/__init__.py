"""Where an operation runs: one adapter for each framework, chosen by the arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np

from .._errors import UnsupportedOperationError
from .._parameters import Bound
from .._tape import Traced
from . import numpy as _numpy


class Adapter(Protocol):
    """Runs an operation on the arrays of one framework."""

    def call(self, operation: Any, bound: Bound) -> Any: ...


_FOREIGN = {
    "torch": "PyTorch",
    "jax": "JAX",
    "jaxlib": "JAX",
    "tensorflow": "TensorFlow",
}


@cache
def _framework_of(cls: type) -> str | None:
    """The framework that values of a type belong to. Imports none of them."""
    if issubclass(cls, (Traced, np.ndarray)):
        return "NumPy"
    return _FOREIGN.get(cls.__module__.partition(".")[0])


def is_array(x: Any) -> bool:
    """Whether an argument counts as an array; all else, numbers too, is static."""
    framework = _framework_of(type(x))
    return framework == "NumPy" or (framework is not None and hasattr(x, "shape"))


def adapter_of(leaves: Sequence[Any], operation: str) -> Adapter:
    """The adapter of the framework that these arrays belong to."""
    for leaf in leaves:
        framework = _framework_of(type(leaf))
        if framework != "NumPy":
            raise UnsupportedOperationError(
                f"operation {operation!r} was given a {framework} array "
                f"({type(leaf).__name__}). This version runs operations on NumPy "
                "arrays and gs.Tensor; convert it first: np.asarray(x)."
            )
    return _numpy
