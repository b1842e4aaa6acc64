"""PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .engine import converted, insist, loop

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
