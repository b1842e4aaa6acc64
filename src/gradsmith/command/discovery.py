"""The operations that a module defines: ours, and those of loaded frameworks."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from ..operations.info import OperationInfo
from ..operations.operation import Operation
from ..tools._inputs import framework_of_native, info_of


def operations_in(module: ModuleType) -> dict[str, Any]:
    """The operations at the top of a module and in its classes, by their names.

    Only those that it defines: what it imports is checked where it is defined.
    """
    found: dict[str, Any] = {}
    for name, value in _members(module):
        if any(value is known for known in found.values()):
            continue
        if is_defined_in(value, module.__name__):
            found[name] = value
    return found


def _members(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name, value in list(vars(module).items()):
        yield name, value
        if inspect.isclass(value) and value.__module__ == module.__name__:
            for inner, member in list(vars(value).items()):
                if isinstance(member, staticmethod | classmethod):
                    member = member.__func__
                yield f"{name}.{inner}", member


def is_defined_in(value: Any, module: str) -> bool:
    """Whether something is an operation, and made in this module."""
    if isinstance(value, Operation):
        # One of another's function is at home where its rule is.
        parts = (value, value.fn, value.vjp_rule, value.jvp_rule)
        return any(_module_of(part) == module for part in parts)
    if isinstance(value, ModuleType) or not callable(value):
        return False
    info = _native(value)
    # One without a rule of its own (an operation without backward, a mere base class)
    # has nothing to check.
    return info is not None and bool(info.altered) and info.module == module


def _module_of(value: Any) -> str | None:
    return None if value is None else getattr(value, "__module__", None)


def _native(value: Any) -> OperationInfo | None:
    """What is known of a framework's own operation."""
    if inspect.ismethod(value) and value.__name__ == "apply":
        return None  # of a class that is found itself
    name = framework_of_native(value)
    return None if name is None else info_of(value, name)
