"""PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

version = torch.__version__.partition("+")[0]

numbers = False  # a Python number among the outputs has no gradient


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
    # Not torch.func.jvp, which refuses a Function whose forward takes ctx.
    with torch.no_grad(), forward_ad.dual_level():
        ys = fn(list(map(forward_ad.make_dual, xs, dxs)))
        tangents = [forward_ad.unpack_dual(y).tangent for y in ys]
        return [
            torch.zeros_like(y) if dy is None else dy
            for y, dy in zip(ys, tangents, strict=True)
        ]


def hvp(fn: Any, xs: list[Any], dys: list[Any], vs: list[Any]) -> list[Any]:
    return twice(fn, xs, dys, vs)[0]


def twice(fn: Any, xs: list[Any], dys: list[Any], vs: list[Any]) -> Any:
    xs = [x.detach().requires_grad_() for x in xs]
    # once_differentiable refuses only if the upstream gradient needs a gradient.
    dys = [dy.detach().requires_grad_() for dy in dys]
    with torch.enable_grad():
        gradients = _gradients(fn(xs), xs, dys, create_graph=True)
        slope = _inner(gradients, vs)
    if not (isinstance(slope, torch.Tensor) and slope.requires_grad):
        return [None] * len(xs), [None] * len(dys)
    _require_twice(slope)
    found = list(torch.autograd.grad(slope, [*xs, *dys], allow_unused=True))
    return found[: len(xs)], found[len(xs) :]


def _require_twice(y: Any) -> None:
    """Raise what once_differentiable does, also if no path to xs leads through it."""
    ahead, seen = [y.grad_fn], set()
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.name() == "torch::autograd::Error":
            raise RuntimeError(
                "the rule is marked with @once_differentiable, so it is not to be "
                "differentiated"
            )
        ahead += [parent for parent, _ in node.next_functions]


def _inner(gradients: list[Any], vs: list[Any]) -> Any:
    pairs = zip(gradients, vs, strict=True)
    return sum(
        torch.sum(torch.real(torch.conj(v) * g)) for g, v in pairs if g is not None
    )


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


# --- how arrays lie in memory


def transposed(x: Any) -> Any:
    axes = tuple(reversed(range(x.ndim)))
    return x.permute(axes).contiguous().permute(axes)


def sliced(x: Any) -> Any:
    if x.ndim == 0:
        return x
    return torch.stack([x, torch.zeros_like(x)], -1).flatten(-2)[..., ::2]


def repeated(x: Any) -> Any:
    """The first element everywhere, in no more memory than that one needs."""
    return x.flatten()[:1].clone().reshape(()).expand(x.shape) if x.numel() else x


LAYOUTS = {"transposed": transposed, "sliced": sliced}
