"""Derivatives by PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.autograd import forward_ad

from ...core.patching import patched
from .._calculus import Script
from .natives import parameters_of
from .private import package_of_caller

REPRODUCER = Script(
    imports=("import torch",),
    array="torch.tensor",
    total="torch.sum",
    gradient=(
        "v = torch.tensor({x}, requires_grad=True)",
        "(rule,) = torch.autograd.grad(loss(v), v)",
    ),
)


def value(fn: Any, xs: Any) -> list[Any]:
    # As for a gradient: what needs none may be left out (a bias in speechbrain)
    kinds = [x.is_floating_point() or x.is_complex() for x in xs]
    xs = [x.detach().requires_grad_(kind) for x, kind in zip(xs, kinds, strict=True)]
    with torch.no_grad():
        return [y.detach() for y in fn(xs)]


def vjp(fn: Any, xs: Any, *, nested: bool = False, eager: bool = False) -> Any:
    if nested:
        found: Any = torch.func.vjp(lambda *xs: tuple(fn([*xs])), *xs)
        return [*found[0]], lambda dys: [*found[1](tuple(dys))]
    # Not by torch.func, which refuses a Function whose forward takes ctx. The rule is
    # given the very memory of dys, so that one that changes it is found out.
    xs = [x.detach().requires_grad_() for x in xs]
    with torch.enable_grad():
        ys = _forward(fn, xs)
    parameters = parameters_of(fn)

    def pull(dys: Any) -> list[Any]:
        with parameters():
            return _gradients(ys, xs, dys)

    return ys, pull


def jvp(fn: Any, xs: Any, dxs: Any, *, nested: bool = False) -> Any:
    if nested:
        both: Any = torch.func.jvp(lambda *xs: tuple(fn([*xs])), tuple(xs), tuple(dxs))
        return [*both[0]], [*both[1]]
    with torch.no_grad(), forward_ad.dual_level():
        ys = fn(list(map(forward_ad.make_dual, xs, dxs)))
        duals = [forward_ad.unpack_dual(y) for y in ys]
    return [y for y, _ in duals], [
        torch.zeros_like(y) if dy is None else dy for y, dy in duals
    ]


def second(fn: Any, xs: Any, dys: Any, vs: Any) -> Any:
    xs = [x.detach().requires_grad_() for x in xs]
    # once_differentiable refuses only if the upstream gradient needs a gradient.
    dys = [dy.detach().requires_grad_() for dy in dys]
    with torch.enable_grad():
        ys = _forward(fn, xs)
        with parameters_of(fn)():
            slope = _slope(_gradients(ys, xs, dys, create_graph=True), vs)
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


def _slope(gradients: list[Any], vs: Any) -> Any:
    pairs = zip(gradients, vs, strict=True)
    return sum(
        torch.sum(torch.real(torch.conj(v) * g)) for g, v in pairs if g is not None
    )


def _forward(fn: Any, xs: list[Any]) -> list[Any]:
    """The outputs; what works in place takes no leaves of the graph."""
    try:
        return fn(xs)
    except RuntimeError as error:
        if "leaf Variable" not in str(error):
            raise
    return fn([x.clone() for x in xs])


def _gradients(
    ys: list[Any], xs: list[Any], dys: Any, create_graph: bool = False
) -> list[Any]:
    pairs = [(y, dy) for y, dy in zip(ys, dys, strict=True) if y.requires_grad]
    if not pairs:
        return [None] * len(xs)
    connected, upstream = zip(*pairs, strict=True)
    options: Any = {"retain_graph": True, "create_graph": create_graph}
    try:
        found = torch.autograd.grad(
            connected, xs, upstream, allow_unused=True, **options
        )
    except RuntimeError as error:
        # Such as torch.utils.checkpoint with use_reentrant=True
        if ".grad()" not in str(error):
            raise
        torch.autograd.backward(connected, upstream, **options)
        found = [None] * len(xs)
    return [_accumulated(x, g) for x, g in zip(xs, found, strict=True)]


def _accumulated(x: torch.Tensor, g: Any) -> Any:
    """A gradient, and what a rule that calls backward() itself has left in x.grad."""
    more, x.grad = x.grad, None
    return more if g is None else g if more is None else g + more


@contextmanager
def unstopped() -> Iterator[None]:
    """Also `torch.no_grad()`; what PyTorch and we detach ourselves stays so."""
    original = torch.Tensor.detach

    def detach(x: Any) -> Any:
        is_users = package_of_caller() not in ("torch", "gradsmith")
        return x.view_as(x) if is_users else original(x)

    on = {"__enter__": lambda self: None, "__exit__": lambda self, *_: None}
    with (
        patched(torch.Tensor, detach=detach),
        patched(torch, detach=detach),
        patched(torch.no_grad, **on),
    ):
        yield
