"""The kernels of a framework, gathered from the files of its folder."""

from __future__ import annotations

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
