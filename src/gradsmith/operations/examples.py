"""Arguments to check an operation with, for operations that are not ours."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import MethodType
from typing import Any
from weakref import ref

from .operation import Operation

Example = Callable[[], Any]

# By id, since not everything that can be called has a hash. Nothing is kept alive.
_registry: dict[int, tuple[Any, list[Example]]] = {}


def example(op: Any) -> Callable[[Example], Example]:
    """Give an operation of a framework, or any function, arguments to check it with.

    The decorated function returns them: a tuple in order, a dict by name, or a single
    argument. Arrays may be specs (`gs.spec`). There can be several examples.
    Gradsmith's operations have it as a method: `@op.example`.

    >>> import numpy as np
    >>> import gradsmith as gs
    >>> def scale(x, by):
    ...     return x * by
    >>> @gs.example(scale)
    ... def _():
    ...     return gs.spec("n"), 2.0
    >>> gs.check(scale).ok
    True
    """
    key = _key(op)
    if isinstance(key, Operation):
        return key.example

    def register(make: Example) -> Example:
        _kept(key).append(make)
        return make

    return register


def examples_of(op: Any) -> list[Example]:
    """The examples that were given, in their order."""
    key = _key(op)
    if isinstance(key, Operation):
        return list(key.examples)
    held, made = _registry.get(id(key), (None, []))
    # An id may have been given to another object since
    return made if held is not None and held() is key else []


def _key(op: Any) -> Any:
    """What is meant by a method that is made anew each time it is asked for."""
    owner = getattr(op, "__self__", None)
    if getattr(op, "__name__", "") == "apply" and inspect.isclass(owner):
        return owner  # of an autograd.Function
    return op.__func__ if isinstance(op, MethodType) else op


def _kept(key: Any) -> list[Example]:
    made = examples_of(key)
    if not made:
        _registry[id(key)] = (_reference(key), made)
    return made


def _reference(key: Any) -> Callable[[], Any]:
    number = id(key)
    try:
        return ref(key, lambda _: _registry.pop(number, None))
    except TypeError:  # such as NumPy's ufuncs, which live as long as NumPy does
        return lambda: key
