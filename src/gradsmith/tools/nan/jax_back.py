"""The gradients of what was run, one by one back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ...operations.info import is_floating
from .jax_code import own_lines
from .jax_walk import Entry, Walk
from .steps import SUM, Call, Seen, seen


def back(walk: Walk, ys: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
    """The gradients of the sum of ys by xs, None where there is none."""
    cotangents: dict[int, Any] = {}
    for y in filter(walk.is_active, ys):
        _receive(walk, cotangents, y, jnp.ones_like(y), None)
    for entry in reversed(walk.entries):
        outs = [y for y in entry.outs if is_floating(y)]
        if any(id(y) in cotangents for y in outs):
            dys = [
                cotangents[id(y)] if id(y) in cotangents else jnp.zeros_like(y)
                for y in outs
            ]
            moved = [x for x in entry.ins if walk.is_active(x)]
            for x, dx in zip(moved, _pulled(walk, entry, dys), strict=True):
                _receive(walk, cotangents, x, dx, entry.call)
    return [cotangents.get(id(x)) for x in xs]


def _pulled(walk: Walk, entry: Entry, dys: list[Any]) -> list[Any]:
    """The gradients of the active inputs of what was run."""
    at = [i for i, x in enumerate(entry.ins) if walk.is_active(x)]

    def gradients(xs: Sequence[Any], dys: list[Any]) -> Sequence[Any]:
        def outputs(*xs: Any) -> list[Any]:
            places = dict(zip(at, xs, strict=True))
            ins = [places.get(i, x) for i, x in enumerate(entry.ins)]
            return [y for y in entry.fn(*ins) if is_floating(y)]

        return jax.vjp(outputs, *xs)[1](dys)

    xs = [entry.ins[i] for i in at]
    walk.watch.enter()
    if entry.custom:  # its own rule is the user's: each line of it is seen
        with own_lines():
            code = jax.make_jaxpr(gradients)(xs, dys)
        inside = Walk(walk.watch, phase="backward")
        dxs = inside.run(code.jaxpr, code.consts, [*xs, *dys], None)
    else:
        dxs = gradients(xs, dys)
    ins = [*seen(dys, id, "dy"), *entry.call.ins]
    walk.watch.saw(entry.call.back(ins, seen(dxs, id, "dx")))
    return list(dxs)


def _receive(
    walk: Walk, cotangents: dict[int, Any], x: Any, dx: Any, call: Call | None
) -> None:
    before = cotangents.get(id(x))
    if before is not None:
        ins = seen([before, dx], id, "dy")
        dx = before + dx
        place = call and call.place
        out = Seen("dy", dx, id(dx))
        walk.watch.saw(Call(SUM, "backward", place, ins, [out], elementwise=True))
    cotangents[id(x)] = dx
