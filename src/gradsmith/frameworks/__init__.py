"""Where an operation runs: one adapter for each framework, chosen by the arrays."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import count
from typing import Any, Protocol
from weakref import WeakValueDictionary

from ..core.arrays import NAMES, common_framework
from ..core.cotangent import Spec
from ..core.errors import UnsupportedOperationError
from ..core.import_hooks import once_imported
from ..operations.parameters import Bound
from .numpy import call as _numpy


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

# The operations there are, by what a compiler's graph can name them by.
OPERATIONS: WeakValueDictionary[str, Any] = WeakValueDictionary()
_numbers = count()


def adapter_of(leaves: Sequence[Any], operation: str) -> Adapter:
    """The adapter of the framework that these arrays belong to."""
    name = common_framework(leaves, f"operation {operation!r}")
    return _adapters.get(name) or load(name)


def registered(operation: Any) -> str:
    """Make a new operation known; the key that it is known by."""
    key = str(next(_numbers))  # a compiler may take a number for a variable
    OPERATIONS[key] = operation
    return key


def load(name: str) -> Adapter:
    """The adapter of a framework; its arrays were seen, so it is imported already."""
    if _too_old(name):
        oldest = ".".join(map(str, _OLDEST[name]))
        raise UnsupportedOperationError(
            f"this is {NAMES[name]} {sys.modules[name].__version__}, and operations "
            f"run on {oldest} and later: pip install --upgrade {name}"
        )
    found: Any = import_module(f"{__name__}.{name}")
    _adapters[name] = found
    return found


def _too_old(name: str) -> bool:
    numbers = sys.modules[name].__version__.partition("+")[0].split(".")[:2]
    return tuple(map(int, numbers)) < _OLDEST[name]


def _load_for_dynamo(dynamo: Any) -> None:
    """PyTorch's compiler traces calls of operations, also if it is the first."""
    if not _too_old("torch"):
        load("torch")


once_imported("torch._dynamo", _load_for_dynamo)
