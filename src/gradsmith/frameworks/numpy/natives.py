"""NumPy has no custom gradients of its own: every operation of the engine is ours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...operations.info import OperationInfo

axis = "axis"
defaults: dict[str, dict[str, Any]] = {}
sums_gradients = False
functions = ()


def info_of(op: Any) -> OperationInfo | None:
    return None


def gradients_in(
    info: OperationInfo, args: Any, kwargs: Any, returned: Any
) -> Iterator[tuple[str, Any]]:
    return iter(())
