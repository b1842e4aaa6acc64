"""Arguments of an operation as a node of a graph can have them, and back.

Such a node takes tensors, numbers and words, in tuples, lists and dicts.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import torch

from ..._errors import UnsupportedOperationError

_CONSTANTS = (int, float, complex, bool, str, type(None), torch.dtype, torch.device)
_CLASS = "gradsmith: a dataclass of"


def encoded(value: Any, name: str) -> Any:
    """A value as a node can have it."""
    if isinstance(value, (torch.Tensor, *_CONSTANTS)):
        return value
    if isinstance(value, (tuple, list)):
        parts = [encoded(part, name) for part in value]
        return parts if isinstance(value, list) else _as_tuple(value, parts)
    if type(value) is dict:
        return {key: encoded(part, name) for key, part in value.items()}
    if hasattr(value, "__dataclass_fields__"):
        fields = {
            key: encoded(getattr(value, key), name)
            for key in type(value).__dataclass_fields__
        }
        return {_CLASS: [type(value).__module__, type(value).__qualname__], **fields}
    raise UnsupportedOperationError(
        f"operation {name!r} is compiled under torch.func, and one of its arguments is "
        "neither a tensor, a number nor a word, nor made of these\n"
        "  what to do: pass what the operation needs of it, for example self.weight "
        "in place of self, or compile without torch.func (y.backward())"
    )


def _as_tuple(like: Any, parts: list[Any]) -> Any:
    return type(like)._make(parts) if hasattr(like, "_fields") else tuple(parts)


def decoded(value: Any) -> Any:
    """What `encoded` was given."""
    if isinstance(value, dict):  # the graph has containers of its own
        parts = {key: decoded(part) for key, part in value.items()}
        if _CLASS not in parts:
            return parts
        module, path = parts.pop(_CLASS)
        cls: Any = sys.modules[module]
        for step in path.split("."):
            cls = getattr(cls, step)
        made = object.__new__(cls)
        for key, part in parts.items():
            object.__setattr__(made, key, part)
        return made
    if isinstance(value, tuple):
        return _as_tuple(value, [decoded(part) for part in value])
    return [decoded(part) for part in value] if isinstance(value, list) else value


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


def with_tensors(value: Any, tensors: list[torch.Tensor]) -> Any:
    """What `numbered` was given."""
    if isinstance(value, dict):
        if _TENSOR in value:
            return tensors[value[_TENSOR]]
        if _OTHER in value:
            return _other(value[_OTHER])
        return {key: with_tensors(part, tensors) for key, part in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)([with_tensors(part, tensors) for part in value])
    return value


def _other(text: str) -> Any:
    if text.startswith("torch."):
        return getattr(torch, text.removeprefix("torch."))
    return float(text) if text in ("nan", "inf", "-inf") else torch.device(text)
