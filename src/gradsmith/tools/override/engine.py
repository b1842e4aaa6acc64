"""The embedded engine: NumPy's functions on tensors, and operations of ours."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any

import numpy as np

from ...core import calls, operators, trees
from ...core.patching import patched as attributes
from ...core.rule import find_rule, name_of
from ...core.tape import Traced
from ...core.tensor import Tensor
from ...operations.operation import Operation
from .replacement import replaced
from .scope import Target, is_due, ruled_by, saw


def target_of(target: Any) -> Target | None:
    """An operation of ours, or a function of NumPy's that the engine knows."""
    if isinstance(target, MethodType) and isinstance(target.__func__, Operation):
        target = target.__func__
    if isinstance(target, Operation):
        return Target(_key(target), target.name, held=target)
    known = isinstance(target, Hashable) and find_rule(target) is not None
    if not known and not isinstance(target, np.ufunc):
        return None
    # Tensors are in nothing that a framework has compiled.
    name, shared = name_of(target), (_tensors,)
    return Target(_key(target), name, (), shared, target, afresh=False)


def _key(target: Any) -> Any:
    return ("engine", id(target))


@contextmanager
def operations() -> Iterator[None]:
    """Calls of operations, on arrays of whichever framework; any scope wants it."""
    theirs = Operation.__call__

    def call(self: Operation, *args: Any, **kwargs: Any) -> Any:
        original, signature = MethodType(theirs, self), self.signature.full
        if is_due(_key(self)):
            return replaced(_key(self), self.name, original, args, kwargs, signature)
        saw(self.name)
        with ruled_by(self.name):
            return original(*args, **kwargs)

    with attributes(Operation, __call__=call):
        yield


@contextmanager
def _tensors() -> Iterator[None]:
    """NumPy's functions on tensors, which operators and methods stand for too."""
    by_ufunc: Any = vars(Tensor)["__array_ufunc__"]
    call, binary = calls.call, operators.call_binary

    def array_ufunc(self: Any, fn: Any, method: str, *xs: Any, **kwargs: Any) -> Any:
        def native(*xs: Any, **kwargs: Any) -> Any:
            return by_ufunc(self, fn, method, *xs, **kwargs)

        if method != "__call__":
            return native(*xs, **kwargs)
        return _replaced(fn, native, xs, kwargs)

    def any_call(fn: Any, args: Any, kwargs: Any) -> Any:
        native = lambda *args, **kwargs: call(fn, args, kwargs)
        return _replaced(fn, native, args, kwargs)

    def operator(rule: Any, x1: Any, x2: Any) -> Any:
        return _replaced(rule.fn, lambda x1, x2: binary(rule, x1, x2), (x1, x2), {})

    def with_number(rule: Any, x: Any, inputs: Any, i: int) -> Any:
        return operator(rule, *inputs)

    with (
        attributes(Tensor, __array_ufunc__=array_ufunc),
        attributes(calls, call=any_call),
        attributes(
            operators,
            call=any_call,
            call_binary=operator,
            call_with_number=with_number,
        ),
    ):
        yield


def _replaced(fn: Any, native: Any, args: Any, kwargs: Any) -> Any:
    def original(*args: Any, **kwargs: Any) -> Any:
        followed = any(isinstance(x, Traced) for x in trees.leaves((args, kwargs)))
        return (native if followed else fn)(*args, **kwargs)

    return replaced(_key(fn), name_of(fn), original, args, kwargs)
