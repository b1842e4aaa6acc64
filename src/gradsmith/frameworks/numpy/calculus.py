"""Derivatives by the embedded engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import transforms
from .._calculus import Script

REPRODUCER = Script(
    imports=("import gradsmith as gs",),
    array="np.asarray",
    total="np.sum",
    gradient=("rule = gs.grad(loss)({x})",),
)


def vjp(fn: Any, xs: Any, *, nested: bool = False, eager: bool = False) -> Any:
    ys, pull = transforms.vjp(lambda *xs: tuple(fn([*xs])), *xs)
    return [*ys], lambda dys: [*pull(tuple(dys))]


def jvp(fn: Any, xs: Any, dxs: Any, *, nested: bool = False) -> Any:
    ys, dys = transforms.jvp(lambda *xs: tuple(fn([*xs])), tuple(xs), tuple(dxs))
    return [*ys], [*dys]


def second(fn: Any, xs: Any, dys: Any, vs: Any) -> Any:
    n = len(xs)

    def slope(*both: Any) -> Any:
        gradients = vjp(fn, both[:n])[1](both[n:])
        pairs = zip(gradients, vs, strict=True)
        return sum(np.sum(np.real(np.conj(v) * g)) for g, v in pairs)

    y, pull = transforms.vjp(slope, *xs, *dys)
    found = [*pull(np.ones_like(y))]
    return found[:n], found[n:]
