"""Where an operation runs: one adapter for each framework, chosen by the arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, Protocol

from .._arrays import NAMES, common_framework
from .._cotangent import Spec
from .._errors import UnsupportedOperationError
from .._parameters import Bound
from . import numpy as _numpy


class Adapter(Protocol):
    """Runs operations on the arrays of one framework."""

    def call(self, operation: Any, bound: Bound) -> Any:
        """Run an operation, so that the framework differentiates it by its rule."""
        ...

    def host(
        self,
        fn: Callable[..., Sequence[Any]],
        arrays: Sequence[Any],
        specs: Sequence[Spec],
        name: str,
    ) -> list[Any]:
        """Run a function of NumPy arrays, also where the framework compiles.

        It is given the arrays as NumPy's, and returns one for each spec. Nothing is
        differentiated here.
        """
        ...


# The oldest release whose interfaces the adapter uses.
_OLDEST = {"tensorflow": (2, 18), "jax": (0, 10), "torch": (2, 7)}
_adapters: dict[str, Adapter] = {"numpy": _numpy}


def adapter_of(leaves: Sequence[Any], operation: str) -> Adapter:
    """The adapter of the framework that these arrays belong to."""
    name = common_framework(leaves, f"operation {operation!r}")
    return _adapters.get(name) or load(name)


def load(name: str) -> Adapter:
    """The adapter of a framework; its arrays were seen, so it is imported already."""
    version = sys.modules[name].__version__
    numbers = version.partition("+")[0].split(".")[:2]
    if tuple(map(int, numbers)) < _OLDEST[name]:
        oldest = ".".join(map(str, _OLDEST[name]))
        raise UnsupportedOperationError(
            f"this is {NAMES[name]} {version}, and operations run on {oldest} and "
            f"later: pip install --upgrade {name}"
        )
    found: Any = import_module(f"{__name__}.{name}")
    _adapters[name] = found
    return found
