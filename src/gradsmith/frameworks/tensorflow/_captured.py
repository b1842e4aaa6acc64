"""What a body captures: the tensors that are reachable from its function."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import tensorflow as tf

from ..._parameters import Bound
from ._private import orders_of
from ._tensors import is_floating

_PLAIN = (
    str, bytes, int, float, complex, type(None), type, ModuleType, BuiltinFunctionType,
    np.ndarray, np.generic, tf.DType, tf.TensorShape,
)  # fmt: skip
_DEPTH = 6  # from a function to its helper, to an object, to a dict in it
_MOST = 1000


def followed_by_closure(fn: Any, bound: Bound) -> list[Any]:
    """Tensors that a function captures and that somebody differentiates.

    Looks into closures, globals, bound objects and containers; what is hidden elsewhere
    (in a ContextVar, say) is not found. Of variables only those are among them that a
    tape does not see when they are read.
    """
    found: dict[int, Any] = {}
    mine = {id(x) for x in bound.leaves}
    seen: set[int] = set()
    level: list[Any] = [fn, *bound.values]
    for _ in range(_DEPTH):
        following: list[Any] = []
        for value in level:
            if isinstance(value, _PLAIN) or id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, tf.Variable):
                if not value.trainable and orders_of([value.handle]):
                    found[id(value)] = value.handle
            elif isinstance(value, tf.Tensor):
                if id(value) not in mine and is_floating(value) and orders_of([value]):
                    found[id(value)] = value
            elif len(seen) < _MOST:
                following += _inside(value)
        level = following
    return list(found.values())


def _inside(value: Any) -> list[Any]:
    if isinstance(value, FunctionType):
        return _of_function(value)
    if isinstance(value, MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, (list, tuple, set)):
        return list(value)
    attributes = getattr(value, "__dict__", None)
    return list(attributes.values()) if isinstance(attributes, dict) else []


def _of_function(fn: FunctionType) -> list[Any]:
    values = [fn.__globals__[n] for n in fn.__code__.co_names if n in fn.__globals__]
    values += fn.__defaults__ or ()
    for cell in fn.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            continue
    return values
