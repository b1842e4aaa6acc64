"""MLX's own custom gradients, and modules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten, tree_unflatten

from ...operations.info import OperationInfo
from .._natives import Arguments, by_tree, info_of_module, miscounted, named_arguments


def info_of(op: Any) -> OperationInfo | None:
    """What is known of a module, or of `mx.custom_function`, which hides its rules."""
    if isinstance(op, nn.Module):
        return _of_module(op)
    if not isinstance(op, mx.custom_function):
        return None
    return OperationInfo(
        "custom_function",
        op,
        None,
        None,
        "MLX does not show the rules of an mx.custom_function, so that they can't be "
        "marked; its results are compared with the plain gradient and with differences",
        module=mx.custom_function.__module__,
    )


def _of_module(module: nn.Module) -> OperationInfo:
    call = WithParameters(module)
    return info_of_module(
        module, call, type(module).__call__.__get__(module), call.parameters
    )


class WithParameters:
    """A module as a function of its arguments and, by name, of its parameters.

    What is frozen takes the precision of the rest. A module in training changes it: it
    is put back after the call.
    """

    def __init__(self, module: nn.Module) -> None:
        self.module = module
        self.parameters = dict(tree_flatten(module.trainable_parameters()))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = {n: kwargs.pop(n) for n in self.parameters if n in kwargs}
        if not given:
            return self.module(*args, **kwargs)
        before: Any = self.module.parameters()
        dtype = next(iter(given.values())).dtype
        every: Any = tree_flatten(before)
        frozen = {n: _cast(x, dtype) for n, x in every}
        try:
            self.module.update(tree_unflatten([*{**frozen, **given}.items()]))
            return self.module(*args, **kwargs)
        finally:
            self.module.update(before)


def _cast(x: mx.array, dtype: mx.Dtype) -> mx.array:
    return x.astype(dtype) if mx.issubdtype(x.dtype, mx.floating) else x


def gradients_in(
    info: OperationInfo, args: Any, kwargs: Any, returned: Any
) -> Iterator[tuple[str, Any]]:
    """One for each argument, without a tuple around it if there is one argument."""
    arguments: Arguments = named_arguments(info, args, kwargs)
    given = [returned] if len(arguments) == 1 else returned
    if not isinstance(given, (tuple, list)) or len(given) != len(arguments):
        raise miscounted(arguments, returned)
    yield from by_tree(arguments, given)
