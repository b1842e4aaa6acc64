"""The equations of JAX's code, run one by one, and their gradients back.

Values are known by their identity, so that code inside of code (a compiled function, a
branch, a loop) needs nothing special: its equations are on the same list.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ....core.places import Place
from ....operations.info import is_floating
from ..._observe import SUM, Event, Observer, Operand, operands
from .equations import (
    Kind,
    evaluated,
    inner_code,
    kind_of_name,
    lines_of_rules,
    name_of,
    place_of,
    place_within,
    run_of,
)


class Entry(NamedTuple):
    """What was run: `fn(*ins)` gave `outs`; `custom` if it has a rule of its own."""

    fn: Callable[..., Sequence[Any]]
    ins: Sequence[Any]
    outs: Sequence[Any]
    event: Event
    custom: bool


class Walk:
    """Runs equations, and reports each.

    `active` are the arrays to differentiate by; without them nothing is kept for the
    way back.
    """

    def __init__(
        self, observer: Observer, active: Sequence[Any] = (), phase: str = "forward"
    ) -> None:
        self.observer = observer
        self.phase = phase
        self.entries: list[Entry] = []
        self.active = {id(x) for x in active}
        self.recording = bool(active)

    def is_active(self, x: Any) -> bool:
        return id(x) in self.active and is_floating(x)

    def run(self, code: Any, args: Sequence[Any], outer: Place | None) -> list[Any]:
        """The outputs of code; `outer` is the place of what has no better one."""
        find = place_of if self.phase == "forward" else place_within
        each = lambda eqn, ins: self._equation(eqn, ins, find(eqn) or outer)
        return evaluated(code, args, each)

    def apply(
        self,
        fn: Any,
        ins: Sequence[Any],
        name: str,
        place: Place | None,
        kind: Any = None,
    ) -> list[Any]:
        """Run a function and take note of it."""
        kind = kind or Kind()
        if kind.custom:
            self.observer.enter()
        return self._note(fn, ins, list(fn(*ins)), name, place, kind)

    # --- one equation

    def _equation(self, eqn: Any, ins: list[Any], place: Place | None) -> list[Any]:
        name = eqn.primitive.name
        special = getattr(self, f"_{name}", None)
        if special is not None:
            return special(eqn, ins, place)
        kind, inner = kind_of_name(eqn.primitive.name), inner_code(eqn, ins)
        if inner is not None and not kind.custom:
            return self.run(inner, ins, place)
        fn = run_of(eqn)
        if inner is None:
            return self.apply(fn, ins, name_of(eqn), place, kind)
        # It has a rule of its own, by which it goes back as a whole.
        self.observer.enter()
        recording, self.recording = self.recording, False
        outs = self.run(inner, ins, place)
        self.recording = recording
        return self._note(fn, ins, outs, name_of(eqn), place, kind)

    def _note(
        self, fn: Any, ins: Any, outs: Any, name: str, place: Any, kind: Kind
    ) -> list[Any]:
        event = Event(
            name, self.phase, place, operands(ins, id, "x"), operands(outs, id, "y"),
            kind.elementwise, kind.selects, encloses=kind.custom,
        )  # fmt: skip
        self.observer.event(event)
        if self.recording and any(map(self.is_active, ins)):
            self.active.update(map(id, outs))
            self.entries.append(Entry(fn, ins, outs, event, kind.custom))
        return outs

    def _cond(self, eqn: Any, ins: list[Any], place: Place | None) -> list[Any]:
        branches = eqn.params["branches"]
        chosen = branches[min(max(int(ins[0]), 0), len(branches) - 1)]
        return self.run(chosen, ins[1:], place)

    def _while(self, eqn: Any, ins: list[Any], place: Place | None) -> list[Any]:
        cond, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
        n, m = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
        theirs, own, carry = ins[:n], ins[n : n + m], ins[n + m :]
        while bool(self.run(cond, [*theirs, *carry], place)[0]):
            carry = self.run(body, [*own, *carry], place)
        return carry

    def _scan(self, eqn: Any, ins: list[Any], place: Place | None) -> list[Any]:
        p = eqn.params
        n, m, body = p["num_consts"], p["num_consts"] + p["num_carry"], p["jaxpr"]
        consts, carry, xs = ins[:n], ins[n:m], ins[m:]
        order = range(p["length"])
        rows: list[list[Any]] = []
        for i in reversed(order) if p["reverse"] else order:
            slices = [
                self.apply(lambda x, i=i: [x[i]], [x], "scan", place)[0] for x in xs
            ]
            outs = self.run(body, [*consts, *carry, *slices], place)
            carry = outs[: p["num_carry"]]
            rows.append(outs[p["num_carry"] :])
        rows = rows[::-1] if p["reverse"] else rows
        stack: Any = lambda *ys: [jnp.stack(ys)]
        columns = zip(*rows, strict=True)
        stacked = [self.apply(stack, list(ys), "scan", place)[0] for ys in columns]
        if not rows:
            outs = body.out_avals[p["num_carry"] :]
            stacked = [jnp.zeros((0, *out.shape), out.dtype) for out in outs]
        return [*carry, *stacked]


def gradients(walk: Walk, ys: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
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
                _receive(walk, cotangents, x, dx, entry.event)
    return [cotangents.get(id(x)) for x in xs]


def _pulled(walk: Walk, entry: Entry, dys: list[Any]) -> list[Any]:
    """The gradients of the active inputs of what was run."""
    at = [i for i, x in enumerate(entry.ins) if walk.is_active(x)]

    def pulled(xs: Sequence[Any], dys: list[Any]) -> Sequence[Any]:
        def outputs(*xs: Any) -> list[Any]:
            places = dict(zip(at, xs, strict=True))
            ins = [places.get(i, x) for i, x in enumerate(entry.ins)]
            return [y for y in entry.fn(*ins) if is_floating(y)]

        return jax.vjp(outputs, *xs)[1](dys)

    xs = [entry.ins[i] for i in at]
    walk.observer.enter()
    if entry.custom:  # its own rule is the user's: each line of it is seen
        with lines_of_rules():
            code = jax.make_jaxpr(pulled)(xs, dys)
        inside = Walk(walk.observer, phase="backward")
        dxs = inside.run(code, [*xs, *dys], None)
    else:
        dxs = pulled(xs, dys)
    ins = [*operands(dys, id, "dy"), *entry.event.inputs]
    walk.observer.event(entry.event.backward(ins, operands(dxs, id, "dx")))
    return list(dxs)


def _receive(
    walk: Walk, cotangents: dict[int, Any], x: Any, dx: Any, event: Event | None
) -> None:
    before = cotangents.get(id(x))
    if before is not None:
        ins = operands([before, dx], id, "dy")
        dx = before + dx
        place = event and event.place
        outs = [Operand("dy", dx, id(dx))]
        total = Event(SUM, "backward", place, ins, outs, elementwise=True)
        walk.observer.event(total)
    cotangents[id(x)] = dx
