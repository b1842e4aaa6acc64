"""What the kernels of several frameworks share, and how they are gathered."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from ._protocol import Kernels

NAMES = frozenset(
    [*Kernels.__annotations__, *(name for name in vars(Kernels) if name[0] != "_")]
)


def gathered(*modules: ModuleType) -> dict[str, Any]:
    """What these modules have of the names that the protocol asks for."""
    found = [pair for module in modules for pair in vars(module).items()]
    return {name: value for name, value in found if name in NAMES}


def evaluated(fn: Any, *args: Any) -> Any:
    return fn(*args)


def degrees_of_freedom(x: Any, axes: Any, ddof: float) -> float:
    n = 1
    for i in axes:
        n = n * x.shape[i]
    return max(n - ddof, 0)


def floats(is_float: Callable[[Any], bool], constant: Callable[[Any, Any], Any]) -> Any:
    """`as_floats`, with Python numbers as `constant` makes them, like the other."""

    def as_floats(name: str, x1: Any, x2: Any) -> tuple[Any, Any] | None:
        if type(x2) is float or type(x2) is int:
            return (x1, constant(x2, x1)) if is_float(x1) else None
        if type(x1) is float or type(x1) is int:
            return (constant(x1, x2), x2) if is_float(x2) else None
        alike = is_float(x1) and is_float(x2) and x1.dtype == x2.dtype
        return (x1, x2) if alike else None

    return as_floats
