"""What a body captures: found from its function, or when it is used."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from functools import cache, partial
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np
import tensorflow as tf

from ....core.arity import arity_of
from ....operations.parameters import Bound
from ..private import add_op_callback, orders_of, remove_op_callback
from .specs import is_floating

_PLAIN = (
    str, bytes, int, float, complex, type(None), type, ModuleType, BuiltinFunctionType,
    np.ndarray, np.generic, tf.DType, tf.TensorShape,
)  # fmt: skip
_DEPTH = 6  # from a function to its helper, to an object, to a dict in it
_MOST = 1000


def captured_by_closure(fn: Any, bound: Bound) -> list[Any]:
    """Variables and tensors with gradients that a function captures.

    Looks into closures, globals, bound objects and containers.
    """
    found: list[Any] = []
    seen = {id(x) for x in bound.leaves}
    level: list[Any] = [fn, *bound.values]
    for _ in range(_DEPTH):
        following: list[Any] = []
        for value in level:
            if isinstance(value, _PLAIN) or id(value) in seen:
                continue
            seen.add(id(value))
            if isinstance(value, tf.Variable):
                found.append(value)
            elif isinstance(value, tf.Tensor):
                found += [value] if is_floating(value) else []
            elif len(seen) < _MOST:
                following += _inside(value)
        level = following
    return found


def followed(captured: Sequence[Any]) -> list[Any]:
    """Those that somebody differentiates, as tensors.

    Of variables only those are among them that a tape does not see when they are read.
    """
    found = []
    for x in captured:
        if isinstance(x, tf.Variable):
            x = None if x.trainable else x.handle
        if x is not None and orders_of([x]):
            found.append(x)
    return found


class Uses:
    """What operations use of tensors that somebody differentiates, beside the known.

    Finds what is hidden from a search, in a ContextVar say.
    """

    def __init__(self, known: Sequence[Any]) -> None:
        self.found: list[Any] = []
        self._seen = {id(x): x for x in known}  # kept, so that no id comes again

    def __enter__(self) -> Uses:
        add_op_callback(self._see)
        return self

    def __exit__(self, *exception: Any) -> None:
        remove_op_callback(self._see)

    def _see(
        self, kind: str, xs: Any, attrs: Any, ys: Any, op_name: Any = None, graph=None
    ) -> None:
        for x in xs if graph is None else ():
            if id(x) not in self._seen:
                self._seen[id(x)] = x
                if orders_of([x]) and is_floating(x):
                    self.found.append(x)
        self._seen.update((id(y), y) for y in ys if graph is None)


def _inside(value: Any) -> list[Any]:
    if isinstance(value, FunctionType):
        return _of_function(value)
    if isinstance(value, MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, (list, tuple, set, deque)):
        return list(value)
    attributes = getattr(value, "__dict__", None)
    return list(attributes.values()) if isinstance(attributes, dict) else []


def _of_function(fn: FunctionType) -> list[Any]:
    names = _names_in(fn.__code__)
    values = [fn.__globals__[name] for name in names if name in fn.__globals__]
    values += fn.__defaults__ or ()
    for cell in fn.__closure__ or ():
        try:
            values.append(cell.cell_contents)
        except ValueError:  # not assigned yet
            continue
    return values


@cache
def _names_in(code: CodeType) -> frozenset[str]:
    """The names of globals, among others, in a function and those inside of it."""
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return frozenset(code.co_names).union(*map(_names_in, inner))


def takes_variables(operation: Any) -> bool:
    """Whether its rule takes `variables`, as far as is known before the body runs."""
    if not operation.closure:
        rule = operation.vjp_rule
        return rule is not None and arity_of(rule).variables
    code = getattr(operation.fn, "__code__", None)
    return code is not None and _has_variables(code)


@cache
def _has_variables(code: CodeType) -> bool:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return any("variables" in c.co_varnames or _has_variables(c) for c in inner)
