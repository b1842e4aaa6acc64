"""The engine neither compiles nor vectorizes: functions run as they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.errors import GradsmithError, UnsupportedOperationError
from ...core.tape import only
from ...core.tensor import unwrap

JIT = VMAP = ""


def jit(fn: Callable[..., Any]) -> Any:
    raise UnsupportedOperationError(
        "NumPy compiles nothing: functions run as they are written"
    )


def vmap(fn: Callable[..., Any], *lists: Any) -> Any:
    raise UnsupportedOperationError(
        "NumPy vectorizes nothing: write the function for arrays with one more axis"
    )


def loop(going: Callable[[Any], Any], step: Callable[[Any], Any], state: Any) -> Any:
    while going(state):
        state = step(state)
    return state


def unrecorded() -> Any:
    return only(())


def columns(push: Callable[[Any], Any], like: Any) -> Any:
    found = [push(e) for e in np.eye(len(like), dtype=like.dtype)]
    return np.stack(found, axis=-1) if found else np.zeros((0, 0), like.dtype)


def insist(x: Any, holds: Any, text: str, **facts: Any) -> Any:
    if not holds:
        numbers = {k: float(unwrap(v)) for k, v in facts.items()}
        raise GradsmithError(text.format(**numbers))
    return x
