"""TensorFlow's own custom gradients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import wraps
from typing import Any

import tensorflow as tf

from ...operations.info import (
    Around,
    OperationInfo,
    name_of,
    of_function,
    signature_of,
    without_rule,
)
from .._natives import info_of_module, leaf_names, miscounted, named_arguments
from ..keras import natives as keras
from .private import Function, body_of, unlocked

defaults = {"leaky_relu": {"alpha": 0.2}}
forward_rules = False


def info_of(op: Any) -> OperationInfo | None:
    """What is known of a function that TensorFlow decorated, or of a module."""
    known = keras.info_of(op, "tensorflow")
    if known is not None or isinstance(op, tf.Module):
        return known or _of_module(op)
    if isinstance(op, Function):
        return replace(of_function(op), call=unlocked(op))
    body = body_of(op)
    if body is None:
        return None

    def altered(around: Around) -> Any:
        return nullcontext(tf.custom_gradient(_altered(body, around)))

    module = getattr(body, "__module__", None)
    return OperationInfo(
        name_of(op),
        op,
        signature_of(body),
        altered,
        module=module,
        body=without_rule(body),
        rule=body,
    )


def _of_module(module: Any) -> OperationInfo | None:
    call = WithVariables(module)
    if not callable(module) or not call.variables:
        return None
    return info_of_module(module, call, getattr(module, "call", module), call.variables)


class WithVariables:
    """A module as a function of its arguments and, by name, of its variables.

    Those that are attributes; others (in lists) are constants.
    """

    def __init__(self, module: Any) -> None:
        self.module = module
        trainable = {id(v) for v in module.trainable_variables}
        self._places = {
            f"{each.name}.{name}": (vars(each), name)
            for each in (module, *module.submodules)
            for name, v in vars(each).items()
            if isinstance(v, tf.Variable) and id(v) in trainable
        }
        self.variables = {
            path: tf.convert_to_tensor(scope[name])
            for path, (scope, name) in self._places.items()
        }

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = {path: kwargs.pop(path) for path in self.variables if path in kwargs}
        before = [(*self._places[path], self._variable(path)) for path in given]
        try:
            for path, value in given.items():
                scope, name = self._places[path]
                scope[name] = value
            return self.module(*args, **kwargs)
        finally:
            for scope, name, variable in before:
                scope[name] = variable

    def _variable(self, path: str) -> Any:
        scope, name = self._places[path]
        return scope[name]


def _altered(body: Any, around: Around) -> Any:
    @wraps(body)
    def copy(*args: Any, **kwargs: Any) -> Any:
        y, grad = body(*args, **kwargs)
        return y, around(grad)

    return copy


def gradients_in(
    info: OperationInfo, args: Any, kwargs: Any, returned: Any
) -> Iterator[tuple[str, Any]]:
    """`grad(*dys, variables=None)`: flat, one for each tensor in the arguments."""
    arguments = named_arguments(info, args, kwargs)[: len(args)]
    names = [name for pair in arguments for name in leaf_names(*pair)]
    gradients = _flat(returned)
    if len(gradients) != len(names) and _has_variables(returned):
        gradients = _flat(returned[0])
    if len(gradients) != len(names):
        raise miscounted([(name, None) for name in names], returned)
    yield from zip(names, gradients, strict=True)


def _has_variables(returned: Any) -> bool:
    """Whether the gradients of variables come with those of the arguments."""
    is_pair = isinstance(returned, (tuple, list)) and len(returned) == 2
    return is_pair and isinstance(returned[1], (tuple, list))


def _flat(tree: Any) -> list[Any]:
    """All leaves; None is one."""
    if not isinstance(tree, (tuple, list)):
        return [tree]
    return [leaf for part in tree for leaf in _flat(part)]
