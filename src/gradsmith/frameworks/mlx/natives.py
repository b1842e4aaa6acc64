"""MLX's own custom gradients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mlx.core as mx

from ...operations.info import OperationInfo
from .._natives import Arguments, by_tree, miscounted, named_arguments


def info_of(op: Any) -> OperationInfo | None:
    """What is known of `mx.custom_function`, which shows neither function nor rules."""
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


def gradients_in(
    info: OperationInfo, args: Any, kwargs: Any, returned: Any
) -> Iterator[tuple[str, Any]]:
    """One for each argument, without a tuple around it if there is one argument."""
    arguments: Arguments = named_arguments(info, args, kwargs)
    given = [returned] if len(arguments) == 1 else returned
    if not isinstance(given, (tuple, list)) or len(given) != len(arguments):
        raise miscounted(arguments, returned)
    yield from by_tree(arguments, given)
