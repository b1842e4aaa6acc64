"""PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch

version = torch.__version__.partition("+")[0]


def array(x: np.ndarray, dtype: str) -> Any:
    return torch.tensor(x, dtype=getattr(torch, dtype))


def dtype_name(x: Any) -> str:
    return str(x.dtype).removeprefix("torch.")


def numpy(x: Any) -> np.ndarray:
    x = x.detach().resolve_conj().resolve_neg().to("cpu", copy=True)
    if x.layout is not torch.strided:
        x = x.to_dense()
    return (x.float() if x.dtype is torch.bfloat16 else x).numpy()


def precision(dtype: str) -> AbstractContextManager[Any]:
    return nullcontext()


@contextmanager
def alone() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def value(fn: Any, xs: list[Any]) -> list[Any]:
    with torch.no_grad():
        return fn(xs)


def vjp(fn: Any, xs: list[Any]) -> Any:
    # A gradient that nobody may change: the rule is given the very memory of dys.
    xs = [x.detach().requires_grad_() for x in xs]
    with torch.enable_grad():
        ys = fn(xs)

    def pull(dys: list[Any]) -> list[Any]:
        return _gradients(ys, xs, dys)

    return ys, pull


def jvp(fn: Any, xs: list[Any], dxs: list[Any]) -> list[Any]:
    return list(torch.func.jvp(lambda *xs: tuple(fn(xs)), tuple(xs), tuple(dxs))[1])


def hvp(fn: Any, xs: list[Any], dys: list[Any], vs: list[Any]) -> list[Any]:
    xs = [x.detach().requires_grad_() for x in xs]
    with torch.enable_grad():
        ys = fn(xs)
        gradients = _gradients(ys, xs, dys, create_graph=True)
        pairs = zip(gradients, vs, strict=True)
        slope = sum(
            torch.sum(torch.real(torch.conj(v) * g)) for g, v in pairs if g is not None
        )
    if not (isinstance(slope, torch.Tensor) and slope.requires_grad):
        return [None] * len(xs)
    return list(torch.autograd.grad(slope, xs, allow_unused=True))


def _gradients(
    ys: list[Any], xs: list[Any], dys: list[Any], create_graph: bool = False
) -> list[Any]:
    pairs = [(y, dy) for y, dy in zip(ys, dys, strict=True) if y.requires_grad]
    if not pairs:
        return [None] * len(xs)
    connected, upstream = zip(*pairs, strict=True)
    return list(
        torch.autograd.grad(
            connected,
            xs,
            upstream,
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
    )
