"""Compiled and vectorized functions in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from types import FunctionType
from typing import Any

import torch

from ..numpy import compiled as engine

JIT, VMAP = "torch.compile", "torch.func.vmap"
unrecorded = torch.no_grad
_numbers = count()


def jit(fn: Any) -> Any:
    """Compiled whole, or else in pieces."""
    whole, pieces = (traced(fn, fullgraph=each) for each in (True, False))

    def call(*lists: Any) -> Any:
        try:
            return whole(*lists)
        except Exception:
            return pieces(*lists)

    return call


def traced(fn: Any, *, fullgraph: bool) -> Any:
    """Compile with all that traces and differentiates, and without generating code.

    Compiled code is kept with a function's code, so each gets its own; resetting the
    compiler would take away what the caller compiled.
    """

    def call(*lists: Any) -> Any:
        return fn(*lists)

    code = call.__code__.replace(co_name=f"compiled_{next(_numbers)}")
    fresh = FunctionType(code, globals(), closure=call.__closure__)
    return torch.compile(fresh, backend="aot_eager", fullgraph=fullgraph)


def vmap(fn: Any, *lists: Any) -> list[Any]:
    return torch.func.vmap(lambda *lists: fn(*lists))(*lists)


def columns(push: Callable[[Any], Any], like: Any) -> Any:
    eye = torch.eye(len(like), dtype=like.dtype, device=like.device)
    return torch.func.vmap(push, out_dims=-1)(eye)


@torch.compiler.disable  # no compiler knows how often
def loop(going: Callable[[Any], Any], step: Callable[[Any], Any], state: Any) -> Any:
    # Under vmap the loop ends when it has for all, and those that are done stay.
    while _any(more := going(state)):
        state = [
            torch.where(more, new, old)
            for new, old in zip(step(state), state, strict=True)
        ]
    return state


@torch.compiler.disable
def insist(x: Any, holds: Any, text: str, **facts: Any) -> Any:
    if _any(~holds):
        worst = {k: _Most.apply(torch.where(holds, 0, v)) for k, v in facts.items()}
        engine.insist(x, False, text, **worst)
    return x


def _any(truth: Any) -> bool:
    return bool(_Most.apply(truth))


class _Most(torch.autograd.Function):
    """The largest of a number's values over all that vmap holds at once."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x.max()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output)

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any) -> Any:
        return _Most.apply(x), None
