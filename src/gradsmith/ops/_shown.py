"""Losses are functions around an operation: `loss.kernels(...)` shows those of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..core import hooks
from ..core.errors import GradsmithError


def kernels_of(loss: Callable[..., Any]) -> Callable[..., Any]:
    """What `Operation.kernels` is, for a function that calls an operation."""

    def kernels(*args: Any, **kwargs: Any) -> Any:
        """What a call runs as if it is fused: its loops, as text."""
        called, thread = [], threading.get_ident()

        def see(proceed: Any, operation: Any, args: Any, kwargs: Any) -> Any:
            if operation.fused is not None and threading.get_ident() == thread:
                called.append((operation, args, kwargs))
            return proceed(operation, args, kwargs)

        with hooks.CALL.wrapped(see):
            loss(*args, **kwargs)
        if not called:
            raise GradsmithError(f"ops.{loss.__name__} has no kernels for this call")
        operation, args, kwargs = called[0]
        return operation.kernels(*args, **kwargs)

    return kernels
