"""Compiled and vectorized functions in MLX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from ...core.errors import UnsupportedOperationError
from .._captured import with_captured
from ..numpy import compiled as engine
from .call.captured import DEPTH, captured_by, is_known

JIT, VMAP = "mx.compile", "mx.vmap"


def jit(fn: Any) -> Any:
    return mx.compile(lambda *lists: fn(*lists))


def vmap(fn: Any, *lists: Any) -> list[Any]:
    return mx.vmap(fn)(*lists)


def loop(going: Callable[[Any], Any], step: Callable[[Any], Any], state: Any) -> Any:
    if not is_known(state):
        raise UnsupportedOperationError(
            "MLX has no loop that ends by what it computes inside mx.compile and "
            "mx.vmap\n"
            "  what to do: call this outside them; mx.grad, mx.vjp and mx.jvp are "
            "fine"
        )
    while bool(going(state)):
        state = step(state)
    return state


def converted(fn: Any, x: Any, arrays: list[Any]) -> tuple[Any, list[Any]]:
    n, captured = len(arrays), captured_by(fn)
    places = {id(each): i for i, each in enumerate(captured, n)}

    def pure(x: Any, arrays: list[Any]) -> Any:
        swap = lambda each: arrays[places[id(each)]] if id(each) in places else each
        return with_captured(fn, swap, DEPTH)(x, arrays[:n])

    return pure, [*arrays, *captured]


def columns(push: Callable[[Any], Any], like: Any) -> Any:
    rows = [push(row) for row in mx.unstack(mx.eye(len(like), dtype=like.dtype))]
    return mx.stack(rows, -1) if rows else mx.zeros((0, 0), like.dtype)


def insist(x: Any, holds: Any, text: str, **facts: Any) -> Any:
    if is_known([v for v in (holds, *facts.values()) if isinstance(v, mx.array)]):
        return engine.insist(x, holds, text, **facts)
    return mx.where(holds, x, mx.array(mx.nan, x.dtype))
