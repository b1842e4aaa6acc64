"""PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from . import engine
from .engine import converted

__all__ = ["columns", "converted", "insist", "jvp", "loop", "quiet", "vjp"]


def vjp(fn: Any, xs: list[Any]) -> Any:
    found: Any = torch.func.vjp(lambda *xs: tuple(fn([*xs])), *xs)
    ys, pull = found
    return [*ys], lambda dys: [*pull(tuple(dys))]


def jvp(fn: Any, xs: list[Any], dxs: list[Any]) -> Any:
    found: Any = torch.func.jvp(lambda *xs: tuple(fn([*xs])), tuple(xs), tuple(dxs))
    ys, dys = found
    return [*ys], [*dys]


def quiet() -> Any:
    return torch.no_grad()


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
