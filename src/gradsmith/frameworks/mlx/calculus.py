"""Derivatives by MLX, which runs a function anew for each."""

from __future__ import annotations

from typing import Any

import mlx.core as mx

from .._calculus import Script
from .call.specs import has_gradient

REPRODUCER = Script(
    imports=("import mlx.core as mx",),
    array="mx.array",
    total="mx.sum",
    gradient=("rule = np.array(mx.grad(loss)(mx.array({x})))",),
)

# Functions are made of functions and lists, and of no objects: so what they captured
# can be found, and exchanged, where an operation is given one of them.


def _places(xs: Any) -> list[int]:
    return [i for i, x in enumerate(xs) if has_gradient(x)]


def _put(xs: list[Any], places: list[int], some: Any) -> list[Any]:
    given = dict(zip(places, some, strict=True))
    return [given.get(i, x) for i, x in enumerate(xs)]


def value(fn: Any, xs: Any) -> list[Any]:
    return [*fn([*xs])]


def vjp(fn: Any, xs: Any, *, nested: bool = False, eager: bool = False) -> Any:
    xs = [*xs]
    ys = value(fn, xs)
    moving = [(i, y.dtype) for i, y in enumerate(ys) if has_gradient(y)]

    def pull(dys: Any) -> list[Any]:
        return _pulled(fn, xs, moving, dys)

    return ys, pull


def _pulled(fn: Any, xs: list[Any], moving: list[Any], dys: Any) -> list[Any]:
    """The gradients of all arguments, zeros where there is none."""
    places = _places(xs)

    def floating(*some: Any) -> list[Any]:
        ys = [*fn(_put(xs, places, some))]
        return [ys[i] for i, _ in moving]

    given = [mx.array(dys[i], dtype) for i, dtype in moving]
    found = mx.vjp(floating, [xs[i] for i in places], given)[1] if moving else []
    zeros = [mx.zeros_like(x) for x in xs]
    return _put(zeros, places if moving else [], found)


def jvp(fn: Any, xs: Any, dxs: Any, *, nested: bool = False) -> Any:
    xs, dxs = [*xs], [*dxs]
    places = _places(xs)
    ys: list[Any] = []

    def floating(*some: Any) -> list[Any]:
        ys[:] = fn(_put(xs, places, some))
        return [ys[i] for i in _places(ys)]

    given = [xs[i] for i in places], [dxs[i] for i in places]
    found, tangents = mx.jvp(floating, *given)
    moving = _places(ys)
    return _put(ys, moving, found), _put(
        [mx.zeros_like(y) for y in ys], moving, tangents
    )


def second(fn: Any, xs: Any, dys: Any, vs: Any) -> Any:
    xs, dys = [*xs], [*dys]
    n = len(xs)

    def slope(both: list[Any]) -> list[Any]:
        gradients = vjp(fn, both[:n], nested=True)[1](both[n:])
        pairs = [(v, g) for v, g in zip(vs, gradients, strict=True) if has_gradient(g)]
        return [sum(mx.sum(mx.real(mx.conj(v) * g)) for v, g in pairs)]

    found = vjp(slope, [*xs, *dys])[1]([1])
    return found[:n], found[n:]
