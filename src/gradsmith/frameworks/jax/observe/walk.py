"""The equations of JAX's code, run one by one, and their gradients back.

Code inside of code (a compiled function, a branch, a loop) needs nothing special: its
equations are on the same list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ....core.places import Place
from ..._observe import Entry, Event, Walk, operands
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


class EquationWalk(Walk):
    """Runs equations, and reports each."""

    ones_like, zeros_like = staticmethod(jnp.ones_like), staticmethod(jnp.zeros_like)

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
        self.note(Entry(fn, ins, outs, event, kind.custom))
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

    def pull(self, entry: Entry, fn: Any, xs: Sequence[Any], dys: list[Any]) -> Any:
        pulled = lambda xs, dys: jax.vjp(fn, *xs)[1](dys)
        if not entry.custom:
            return pulled(xs, dys)
        with lines_of_rules():  # its own rule is the user's: each line of it is seen
            code = jax.make_jaxpr(pulled)(xs, dys)
        inside = EquationWalk(self.observer, phase="backward")
        return inside.run(code, [*xs, *dys], None)
