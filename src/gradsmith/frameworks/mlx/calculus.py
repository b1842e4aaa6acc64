"""Derivatives by MLX, which runs a function anew for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from .call.specs import has_gradient

compiles = False


class _Floating:
    """A function of those arguments, and to those results, that have a gradient."""

    def __init__(self, fn: Callable[[list[Any]], Any], xs: Any) -> None:
        self.fn = fn
        self.xs = [*xs]
        self.places = [i for i, x in enumerate(self.xs) if has_gradient(x)]

    def taken(self, arrays: Any) -> list[Any]:
        return [arrays[i] for i in self.places]

    def __call__(self, *some: Any) -> list[Any]:
        given = dict(zip(self.places, some, strict=True))
        self.ys = [*self.fn([given.get(i, x) for i, x in enumerate(self.xs)])]
        return [y for y in self.ys if has_gradient(y)]

    def pulled(self, ys: Any, dys: Any) -> list[Any]:
        """The gradients of all arguments, zeros where there is none."""
        pairs = zip(ys, dys, strict=True)
        given = [mx.array(dy, y.dtype) for y, dy in pairs if has_gradient(y)]
        found = mx.vjp(self, self.taken(self.xs), given)[1] if given else []
        dxs = dict(zip(self.places, found, strict=bool(given)))
        return [dxs[i] if i in dxs else mx.zeros_like(x) for i, x in enumerate(self.xs)]


def value(fn: Any, xs: Any) -> list[Any]:
    return [*fn([*xs])]


def vjp(fn: Any, xs: Any, *, nested: bool = False, eager: bool = False) -> Any:
    flat = _Floating(fn, xs)
    ys = value(fn, xs)
    return ys, lambda dys: flat.pulled(ys, dys)


def jvp(fn: Any, xs: Any, dxs: Any, *, nested: bool = False) -> Any:
    flat = _Floating(fn, xs)
    ys, found = mx.jvp(flat, flat.taken(flat.xs), flat.taken([*dxs]))
    values, rest, tangents = [], iter(ys), iter(found)
    dys = []
    for y in flat.ys:
        values.append(next(rest) if has_gradient(y) else y)
        dys.append(next(tangents) if has_gradient(y) else mx.zeros_like(y))
    return values, dys


def second(fn: Any, xs: Any, dys: Any, vs: Any) -> Any:
    xs, dys = [*xs], [*dys]
    n = len(xs)

    def slope(both: list[Any]) -> list[Any]:
        flat = _Floating(fn, both[:n])
        gradients = flat.pulled(value(fn, both[:n]), both[n:])
        pairs = [(v, g) for v, g in zip(vs, gradients, strict=True) if has_gradient(g)]
        return [sum(mx.sum(mx.real(mx.conj(v) * g)) for v, g in pairs)]

    both = _Floating(slope, [*xs, *dys])
    found = both.pulled(both.fn(both.xs), [1])
    return found[:n], found[n:]


def abstract(fn: Any, xs: Any) -> bool:
    return False


def in_bounds(fn: Any, xs: Any) -> bool:
    return True  # MLX reads whatever is there
