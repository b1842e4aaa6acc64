"""Operations as arguments of a tf.function, which asks each argument for its type."""

from __future__ import annotations

from typing import Any

from ...core.arrays import FRAMEWORKS
from ...operations.operation import Operation


def _tracing_type(self: Operation, context: Any) -> Any:
    return FRAMEWORKS["tensorflow"].call.tracing_type(self)


# Else an operation would be taken for the function that it wraps.
setattr(Operation, "__tf_tracing_type__", _tracing_type)  # noqa: B010
