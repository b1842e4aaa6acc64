"""Arguments of an operation as a node of a graph can have them, and back.

Such a node takes tensors, numbers and words, in tuples, lists and dicts.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ....core.caches import Latest
from ....core.errors import UnsupportedOperationError

_CONSTANTS = (int, float, complex, bool, str, type(None), torch.dtype, torch.device)
_CLASS, _OBJECT = "gradsmith: a dataclass of", "gradsmith: an object"


def encoded(value: Any, other: Callable[[Any], Any]) -> Any:
    """A value as a node can have it.

    `other` says what stands for an object that is none of these, and for a class.
    """
    if isinstance(value, (torch.Tensor, *_CONSTANTS)):
        return value
    if type(value) is dict:
        return {key: encoded(part, other) for key, part in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        names = list(type(value).__dataclass_fields__)
    elif hasattr(value, "_fields"):
        names = list(value._fields)
    elif isinstance(value, (tuple, list)):
        parts = [encoded(part, other) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    else:
        return other(value)
    fields = {name: encoded(getattr(value, name), other) for name in names}
    return {_CLASS: other(type(value)), **fields}


def decoded(value: Any) -> Any:
    """What `encoded` was given."""
    if isinstance(value, dict):  # the graph has containers of its own
        parts = {key: decoded(part) for key, part in value.items()}
        if _OBJECT in parts:
            return _object(parts[_OBJECT])
        return _made(parts.pop(_CLASS), parts) if _CLASS in parts else parts
    if isinstance(value, (tuple, list)):
        parts = [decoded(part) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    return value


def _made(cls: Any, parts: dict[str, Any]) -> Any:
    """An object of a class, given itself or by its module and path."""
    if isinstance(cls, list):
        found: Any = sys.modules[cls[0]]
        for step in cls[1].split("."):
            found = getattr(found, step)
        cls = found
    if hasattr(cls, "_make"):
        return cls._make(parts.values())
    made = object.__new__(cls)
    for name, part in parts.items():
        object.__setattr__(made, name, part)
    return made


_objects = Latest()  # those that graphs of this process name


def _object(name: str) -> Any:
    try:
        return _objects[name]
    except KeyError:
        raise gone("is given an object") from None


def gone(what: str) -> UnsupportedOperationError:
    """The error for a graph that names something that is not there."""
    return UnsupportedOperationError(
        f"this graph {what} of the process that it was traced in, and it was traced in "
        "another one, or thousands of others were traced since\n"
        "  what to do: trace or export it again here"
    )


def named(value: Any) -> dict[str, str]:
    """An object as a node of a graph that does not leave the process can have it."""
    return {_OBJECT: name_of(value, id(value))}


def name_of(value: Any, identity: int) -> str:
    """The name of an object; Dynamo compiles anew for one of another identity."""
    _objects[str(identity)] = value
    return str(identity)


def refusing(name: str, where: str, for_class: Callable[[Any], Any]) -> Any:
    """For `encoded`: what has no place in a graph is refused."""

    def other(value: Any) -> Any:
        if isinstance(value, type):
            return for_class(value)
        raise UnsupportedOperationError(
            f"operation {name!r} {where}, and one of its arguments is neither a "
            "tensor, a number nor a string, nor made of these\n"
            "  what to do: pass what the operation needs of it, for example "
            "self.weight instead of self"
        )

    return other


# --- as literals ---------------------------------------------------------------------

_TENSOR, _OTHER = "gradsmith: tensor", "gradsmith: not a literal"


def numbered(value: Any, tensors: list[torch.Tensor]) -> Any:
    """An encoded value as a literal: each tensor is its place in `tensors`."""
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        return {_TENSOR: len(tensors) - 1}
    if isinstance(value, dict):
        return {key: numbered(part, tensors) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)([numbered(part, tensors) for part in value])
    if isinstance(value, (torch.dtype, torch.device)) or value != value:
        return {_OTHER: str(value)}
    return {_OTHER: str(value)} if value in (math.inf, -math.inf) else value


def with_tensors(value: Any, tensors: Sequence[torch.Tensor]) -> Any:
    """What `numbered` was given."""
    if isinstance(value, dict):
        if _TENSOR in value:
            return tensors[value[_TENSOR]]
        if _OTHER in value:
            return _other(value[_OTHER])
        return {key: with_tensors(part, tensors) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        parts = [with_tensors(part, tensors) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    return value


def _other(text: str) -> Any:
    if text.startswith("torch."):
        return getattr(torch, text.removeprefix("torch."))
    return float(text) if text in ("nan", "inf", "-inf") else torch.device(text)


def frozen(value: Any) -> tuple[Any, ...]:
    """A literal in tuples alone, which Dynamo takes for a constant."""
    if isinstance(value, dict):
        return "dict", tuple(value), tuple(map(frozen, value.values()))
    if isinstance(value, (tuple, list)):
        return type(value).__name__, tuple(map(frozen, value))
    return "", value


def thawed(code: tuple[Any, ...]) -> Any:
    """What `frozen` was given."""
    if code[0] == "dict":
        return {key: thawed(part) for key, part in zip(code[1], code[2], strict=True)}
    if code[0] == "":
        return code[1]
    parts = [thawed(part) for part in code[1]]
    return parts if code[0] == "list" else tuple(parts)
