"""Tensors that a gradient function holds inside of objects, or reads by their name.

`closures` tells the tensors in functions and containers from the rest. An object of
the user's is not taken apart, but it must be known that there are tensors in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any
from weakref import WeakValueDictionary

import torch

from ....core import trees
from ....core.reach import global_names
from .closures import content

# What has none, or (modules, with their parameters) none that a body computed
PLAIN = {
    int, float, complex, bool, str, type(None), torch.Size, torch.dtype, torch.device,
    BuiltinFunctionType, ModuleType, type,
}  # fmt: skip
_MOST = 1000  # objects that are looked at


def hidden_in(grad: Any) -> list[torch.Tensor]:
    """The tensors in objects that a gradient function holds."""
    found: list[torch.Tensor] = []
    seen: set[int] = set()
    todo: list[tuple[Any, bool]] = [(grad, False)]  # with: whether it is in an object
    while todo and len(seen) < _MOST:
        value, is_inside = todo.pop()
        if value.__class__ in PLAIN or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            found += [value] * is_inside
        elif value.__class__ is FunctionType:
            todo += [(part, is_inside) for part in _parts_of(value)]
        elif value.__class__ is partial:
            parts = (value.func, value.args, value.keywords)
            todo += [(part, is_inside) for part in parts]
        elif value.__class__ is MethodType:
            todo += [(value.__func__, is_inside), (value.__self__, True)]
        elif not trees.is_leaf(value):
            todo += [(part, is_inside) for _, part in trees.children(value) or ()]
        elif not isinstance(value, (torch.nn.Module, type)):
            todo += [(part, True) for part in _attributes(value)]
    return found


def versions(tensors: Sequence[torch.Tensor]) -> int:
    """How often tensors that can be watched were changed in place."""
    total = 0
    for x in tensors:
        if not x.is_inference():
            total += x._version
    return total


class Named:
    """The tensors that a rule reads as globals, watched for changes in place.

    What rules themselves write into (a record of gradients, say) is not watched.
    """

    __slots__ = ("tensors", "versions")

    def __init__(self, tensors: list[torch.Tensor]) -> None:
        self.tensors = tensors
        self.versions = [x._version for x in tensors]

    def changed(self) -> bool:
        pairs = zip(self.tensors, self.versions, strict=True)
        return any(x._version != n and id(x) not in _written for x, n in pairs)

    def written(self) -> None:
        """Say that all changes until now are by rules."""
        for x, n in zip(self.tensors, self.versions, strict=True):
            if x._version != n:
                _written[id(x)] = x


_written: WeakValueDictionary[int, torch.Tensor] = WeakValueDictionary()


def named_in(rule: Any) -> Named | None:
    """The tensors that a rule, or a function of its module, reads as globals."""
    if rule.__class__ is not FunctionType:
        return None
    found = _named_in(rule, [])
    return Named(found) if found else None


def _named_in(fn: Any, seen: list[Any]) -> list[torch.Tensor]:
    known, found = fn.__globals__, []
    for name in global_names(fn.__code__):
        value = known.get(name)
        cls = value.__class__
        if cls is FunctionType:
            if value.__globals__ is known and value not in seen:
                seen.append(value)
                found += _named_in(value, seen)
        elif (cls is torch.Tensor or cls is torch.nn.Parameter) and (
            not value.is_inference()
        ):
            found.append(value)
    return found


def _parts_of(fn: Any) -> Iterator[Any]:
    yield from map(content, fn.__closure__ or ())
    yield from fn.__defaults__ or ()
    yield from (fn.__kwdefaults__ or {}).values()


def _attributes(value: Any) -> Iterator[Any]:
    yield from getattr(value, "__dict__", {}).values()
    for cls in type(value).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            yield getattr(value, name, None)
