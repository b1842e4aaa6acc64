"""The embedded engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.errors import GradsmithError
from ....core.tape import only
from ....core.transforms import jvp as _jvp
from ....core.transforms import vjp as _vjp


def vjp(fn: Any, xs: list[Any]) -> Any:
    ys, pull = _vjp(lambda *xs: tuple(fn([*xs])), *xs)
    return [*ys], lambda dys: [*pull(tuple(dys))]


def jvp(fn: Any, xs: list[Any], dxs: list[Any]) -> Any:
    ys, dys = _jvp(lambda *xs: tuple(fn([*xs])), tuple(xs), tuple(dxs))
    return [*ys], [*dys]


def loop(going: Callable[[Any], Any], step: Callable[[Any], Any], state: Any) -> Any:
    while going(state):
        state = step(state)
    return state


def quiet() -> Any:
    return only(())


def converted(fn: Any, x: Any, arrays: list[Any]) -> tuple[Any, list[Any]]:
    return fn, arrays


def columns(push: Callable[[Any], Any], like: Any) -> Any:
    found = [push(e) for e in np.eye(len(like), dtype=like.dtype)]
    return np.stack(found, axis=-1) if found else np.zeros((0, 0), like.dtype)


def insist(x: Any, holds: Any, text: str, **facts: Any) -> Any:
    if not holds:
        raise GradsmithError(text.format(**{k: float(v) for k, v in facts.items()}))
    return x
