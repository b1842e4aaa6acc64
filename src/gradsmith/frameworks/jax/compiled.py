"""Compiled and vectorized functions in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
from jax.core import Tracer as _Tracer

from ..numpy import compiled as engine

JIT, VMAP = "jax.jit", "jax.vmap"


def jit(fn: Any) -> Any:
    return jax.jit(lambda *lists: fn(*lists))


def vmap(fn: Any, *lists: Any) -> list[Any]:
    return jax.vmap(fn)(*lists)


def loop(going: Callable[[Any], Any], step: Callable[[Any], Any], state: Any) -> Any:
    return jax.lax.while_loop(going, step, state)


def scan(step: Callable[..., Any], state: Any, xs: list[Any], beside: Any) -> Any:
    if not any(isinstance(x, _Tracer) for x in (state, *xs, *beside)):
        return NotImplemented
    return jax.lax.scan(lambda state, rows: step(state, *rows), state, xs)[1]


def converted(fn: Any, x: Any, arrays: list[Any]) -> tuple[Any, list[Any]]:
    pure, captured = jax.closure_convert(fn, x, arrays)
    n = len(arrays)
    return lambda x, arrays: pure(x, arrays[:n], *arrays[n:]), [*arrays, *captured]


def columns(push: Callable[[Any], Any], like: Any) -> Any:
    return jax.vmap(push, out_axes=-1)(jax.numpy.eye(len(like), dtype=like.dtype))


def insist(x: Any, holds: Any, text: str, **facts: Any) -> Any:
    if not any(isinstance(v, _Tracer) for v in (holds, *facts.values())):
        return engine.insist(x, holds, text, **facts)

    def look(holds: Any, **facts: Any) -> None:
        if not holds.all():
            worst = {name: v.ravel()[holds.argmin()] for name, v in facts.items()}
            engine.insist(None, False, text, **worst)

    jax.debug.callback(look, holds, **facts)
    return jax.numpy.where(holds, x, jax.numpy.nan)
