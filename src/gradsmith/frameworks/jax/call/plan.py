"""What the gradient of a staged operation needs of the body, found by tracing both.

Only that is kept: an argument or an output as it is, and what else `grad` captured as
one more output of the body. When the gradient is differentiated again, this counts as a
function of the inputs, by autodiff; an output is differentiated by the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.core import Tracer, eval_jaxpr
from jax.extend.core import ClosedJaxpr, Literal

from ....core.errors import UnsupportedOperationError
from ..private import dce_jaxpr_consts, naming, naming_inputs, traced, without_values
from .custom import Custom
from .linear import LinearMap
from .rules import Ran
from .specs import derivative, symbolic


def used(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Traced code without what it does not return; constants are what it captures."""
    return _without_unused(closed, closed.jaxpr.outvars)


def _without_unused(closed: ClosedJaxpr, outvars: Sequence[Any]) -> ClosedJaxpr:
    jaxpr = closed.jaxpr.replace(outvars=[*outvars])
    jaxpr = jaxpr.replace(debug_info=jaxpr.debug_info.with_unknown_names())
    keep = [False] * len(jaxpr.constvars) + [True] * len(jaxpr.invars)
    jaxpr, used, _ = dce_jaxpr_consts(jaxpr, [True] * len(outvars), keep)
    consts = [c for c, is_used in zip(closed.consts, used, strict=True) if is_used]
    return ClosedJaxpr(jaxpr, consts)


def evaluated(
    closed: ClosedJaxpr, places: dict[int, int], inputs: Sequence[Any]
) -> list[Any]:
    """Run traced code; inputs are for what it captured (by `places`), and the rest."""
    consts = [inputs[places[id(c)]] if id(c) in places else c for c in closed.consts]
    return eval_jaxpr(closed.jaxpr, consts, *inputs[len(places) :])


class _TracedRule:
    """A rule that was traced; the traced values that it captured are its residuals."""

    def __init__(self, fn: Callable[..., Any], avals: Sequence[Any]) -> None:
        closed = used(traced(fn, avals))
        self.jaxpr = without_values(closed)
        self.captured = [c for c in closed.consts if isinstance(c, Tracer)]
        self.consts = [None if isinstance(c, Tracer) else c for c in closed.consts]

    def taken(self) -> list[Any]:
        """What it captured, which must not outlive the tracing."""
        captured, self.captured = self.captured, []
        return captured

    def run(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        rest = iter(residuals)
        consts = [next(rest) if c is None else c for c in self.consts]
        return eval_jaxpr(self.jaxpr, consts, *tangents)


class Plan:
    """How a staged call is differentiated with respect to the arrays in `wanted`.

    `sources` tell of each residual whether it is an input, an output or new.
    """

    def __init__(self, staged: Any, wanted: Sequence[int]) -> None:
        self.staged = staged
        self.wanted = wanted
        self.moving: Sequence[int] = ()
        outs = [var.aval for var in staged.body.jaxpr.outvars]
        self.count = len(outs)
        # In rule form the rule is given the outputs; the body need not run again.
        closure = staged.call.operation.closure
        given = staged.avals if closure else [*staged.avals, *outs]
        self.code = used(self._traced(given))
        self._refuse_unknown()
        outvars = self.code.jaxpr.outvars
        self.sources = [self._source(var) for var in outvars[self.count :]]
        self.new = [outvars[j] for kind, j in self.sources if kind == "new"]
        if self.new:
            self.code = _without_unused(self.code, [*outvars[: self.count], *self.new])
            self.op = Custom(
                staged.call.operation.name,
                run=self._run,
                jvp=self._jvp,
                outs=self.code.out_avals,
                effects=self.code.effects,
            )

    def _traced(self, given: Sequence[Any]) -> ClosedJaxpr:
        try:
            with naming_inputs(self.staged.captured):
                return traced(self._trace, given)
        except jax.errors.UnexpectedTracerError as error:
            raise UnsupportedOperationError(
                f"operation {self.staged.call.operation.name!r} uses a traced value of "
                "a transformation that has ended when the derivative is computed, and "
                "is not in its closure: make it an argument of the operation"
            ) from error

    def _trace(self, *given: Any) -> list[Any]:
        call, n = self.staged.call, len(self.staged.avals)
        if call.operation.closure:
            ran = call.run(given)
        else:
            bound = call.bound.with_leaves(given[:n])
            ran = Ran(call, bound, given[n:], self.staged.template, None)
        rules = ran.rules(self.wanted)
        self.moving = rules.moving
        pull = _TracedRule(rules.pull, rules.outs) if rules.can_pull else None
        push = _TracedRule(rules.push, rules.ins) if rules.can_push else None
        for_pull, for_push = (rule.taken() if rule else [] for rule in (pull, push))
        a, held = len(for_pull), len(for_pull) + len(for_push)
        self.linear = LinearMap(
            call.operation,
            pull=pull and (lambda *args: pull.run(args[:a], args[held:])),
            push=push and (lambda *args: push.run(args[a:held], args[held:])),
            held=held,
            ins=rules.ins,
            outs=rules.outs,
        )
        return [*ran.ys, *for_pull, *for_push]

    def _refuse_unknown(self) -> None:
        for c in self.code.consts:
            if isinstance(c, Tracer) and id(c) not in self.staged.places:
                name = self.staged.call.operation.name
                raise UnsupportedOperationError(
                    f"the rule of operation {name!r} uses a traced value "
                    f"({jax.typeof(c)}) that is neither an argument nor in its "
                    "closure: make it an argument of the operation, or let the "
                    "function capture it directly"
                )

    def _source(self, var: Any) -> tuple[str, int]:
        jaxpr, n = self.code.jaxpr, len(self.staged.avals)
        places, j = self.staged.places, jaxpr.outvars.index(var)
        if isinstance(var, Literal):
            return "new", j
        if var in jaxpr.invars:
            i = jaxpr.invars.index(var)
            return ("input", len(places) + i) if i < n else ("output", i - n)
        if var in jaxpr.constvars:
            c = self.code.consts[jaxpr.constvars.index(var)]
            return ("input", places[id(c)]) if id(c) in places else ("new", j)
        return ("output", j) if j < self.count else ("new", j)

    def forward(self, inputs: Sequence[Any]) -> tuple[Sequence[Any], list[Any]]:
        """The outputs, and the residuals of the linear function."""
        outs = self.op(*inputs) if self.new else self.staged.op(*inputs)
        ys, new = outs[: self.count], iter(outs[self.count :])
        found = {"input": inputs, "output": ys}
        return ys, [
            next(new) if kind == "new" else found[kind][j] for kind, j in self.sources
        ]

    # The body with new residuals as further outputs

    def _run(self, *inputs: Any) -> list[Any]:
        return evaluated(self.code, self.staged.places, inputs)

    def _jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        with naming(self.staged.axes):
            return self._moved(primals, tangents)

    def _moved(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        ys, dys = derivative(self.staged.op, primals, tangents)
        code = _without_unused(self.code, self.code.jaxpr.outvars[self.count :])

        def residuals(*inputs: Any) -> list[Any]:
            return evaluated(code, self.staged.places, inputs)

        new, moves = derivative(residuals, primals, tangents)
        return [*ys, *new], [symbolic(dy) for dy in (*dys, *moves)]
