"""Operations where JAX stages, batches, or differentiates more than once.

The body is traced by itself, so that what it captures becomes an input like the others:
its gradient is found through the body, that of the arguments by the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.core import Tracer
from jax.custom_derivatives import SymbolicZero

from ..._outputs import rebuilt
from ..private import ad, named_axes, naming, trace_of, traced
from .captured import tracers_in
from .custom import Custom
from .fused import Foreign, FusedPlan, plan_of
from .plan import Plan, evaluated, used
from .primitive import linear_p
from .rules import BoundCall, Ran
from .specs import derivative, still, symbolic


class Staged:
    """A call whose body was traced. Inputs are what it captures, then its arrays."""

    def __init__(self, call: BoundCall, leaves: Sequence[Any]) -> None:
        self.call = call
        self.avals = [jax.typeof(x) for x in leaves]
        # A rule may be traced when the vmap around the call is gone.
        self.axes = named_axes()
        self.template: Any = None
        captured: list[Any] = []

        def body(*leaves: Any) -> Sequence[Any]:
            ran = call.run(leaves)
            self.template = ran.template
            captured.extend(_captured_by_rules(ran, leaves))
            return ran.ys

        self.body = used(traced(body, self.avals))
        captured += self.body.consts
        tracers = [c for c in captured if isinstance(c, Tracer)]
        self.captured = list({id(c): c for c in tracers}.values())
        self.places = {id(c): i for i, c in enumerate(self.captured)}
        self.op = Custom(
            call.operation.name,
            run=self.run,
            jvp=self._jvp,
            outs=self.body.out_avals,
            effects=self.body.effects,
        )
        plan = self._fused(())
        if plan is not None:
            self.op.kernel = Foreign(
                plan.forward,
                self.op.outs,
                self.run,
                gpu=plan.gpu,
                parts=plan.parts,
            )

    def __call__(self, leaves: Sequence[Any]) -> Any:
        return rebuilt(self.template, self.op(*self.captured, *leaves))

    def run(self, *inputs: Any) -> list[Any]:
        return evaluated(self.body, self.places, inputs)

    def _fused(self, wanted: Sequence[int]) -> Any:
        """Its kernels, if it has some; they see nothing that is captured."""
        if self.captured or self.body.effects or len(self.op.outs) != 1:
            return None
        return plan_of(
            self.call.operation, self.call.described, self.op.outs[0], wanted
        )

    def _jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        with naming(self.axes):
            return self._moved(primals, tangents)

    def _moved(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        k = len(self.captured)
        moves = [type(dx) is not SymbolicZero for dx in tangents]
        wanted = self.call.wanted(moves[k:])
        parts: dict[int, Any] = {}
        if wanted:
            fused = self._fused(wanted)
            plan = FusedPlan(self, wanted, fused) if fused else Plan(self, wanted)
            ys, residuals = plan.forward(primals)
            dxs = [tangents[k + i] for i in wanted]
            dys = linear_p.bind(*residuals, *dxs, linear=plan.linear)
            parts = dict(zip(plan.moving, dys, strict=True))
        else:
            ys = self.op(*primals)
        total: list[Any] = [
            parts.get(i, ad.Zero(jax.typeof(y).to_tangent_aval()))
            for i, y in enumerate(ys)
        ]
        if any(moves[:k]):  # what is captured moves the outputs through the body
            some = [*tangents[:k], *map(still, primals[k:])]
            through = derivative(self.run, primals, some)[1]
            total = [*map(ad.add_tangents, total, through)]
        return ys, [*map(symbolic, total)]


def _captured_by_rules(ran: Ran, leaves: Sequence[Any]) -> list[Any]:
    """What rules capture that is not from the body; they may run when it is gone."""
    operation = ran.call.operation
    rules = (ran.grad, operation.vjp_rule, operation.jvp_rule)
    found = tracers_in(*rules, *ran.call.bound.values)
    return [x for x in found if trace_of(x) is not trace_of(leaves[0])]
