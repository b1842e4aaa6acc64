"""Operations in eager mode: told to the active tapes and accumulators.

If its result may be differentiated once at most, the body runs on aliases of the
arguments, which nobody follows: what the tapes see of it is what comes from values that
it captures. If more than once, in closure form, it runs on the arguments themselves,
for what `grad` captured of the body depends on them. Then a tape of our own follows
what comes from captured values alone.

A kernel stands for body and gradient where there is one (fused.py). If its gradient is
differentiated, or asked for in a graph, the body runs after all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ....core import trees
from ....core.arity import arity_of
from ....operations.application import run_body
from ....operations.parameters import Bound
from ..private import (
    EagerTensor,
    Tape,
    alias,
    could_record,
    executing_eagerly,
    orders_of,
    record_operation,
)
from .captured import Uses, captured_by_closure, followed, takes_variables
from .fused import FusedGradient, plan_of, run_forward
from .opaque import check_of
from .rules import BoundCall
from .specs import as_output, dense, has_gradient, is_floating


def call(operation: Any, bound: Bound, xs: Sequence[Any]) -> Any:
    """Run an operation, and tell the tapes and accumulators of it."""
    if operation.fused is not None:
        y = _by_kernel(operation, bound, xs)
        if y is not None:
            return y
    return _composed(operation, bound, xs)


def _composed(operation: Any, bound: Bound, xs: Sequence[Any]) -> Any:
    if not could_record():
        outputs, _ = run_body(operation, bound.with_leaves(xs))
        return _as_tensors(outputs, operation.name)
    order = orders_of(xs)
    run = _EagerCall(operation, bound, xs, blind=_is_blind(operation, bound, order))
    if run.blind and (run.variables or (order and _has_mixed_derivatives(run, xs))):
        run = _EagerCall(operation, bound, xs, blind=False)
    if run.blind:
        captured = run.ys if orders_of(run.ys) else []
        if not captured and not order:
            return run.outputs
    else:
        captured = run.follow_sources()
    if not run.ys:
        return run.outputs
    return _record(operation, bound, xs, run, captured)


def _by_kernel(operation: Any, bound: Bound, xs: Sequence[Any]) -> Any:
    """Run a kernel if the operation has one for this call, else return None."""
    order = could_record() and orders_of(xs)
    watched = _watched(xs) if order else []
    plan = plan_of(operation, bound, xs, watched, once=order == 1)
    if plan is None:
        return None
    y, saved = run_forward(plan, xs)
    if not watched:
        return y
    gradient = FusedGradient(plan, xs, y if plan.needs_y else None, saved)

    def backward(dy: Any) -> list[Any]:
        dy = dense(dy, operation.name)
        found = gradient(dy) if type(dy) is EagerTensor else None
        return _by_rule(operation, bound, xs, watched, dy) if found is None else found

    record_operation(operation.name, [y], xs, backward)
    return y


def _by_rule(
    operation: Any, bound: Bound, xs: Sequence[Any], wanted: Sequence[int], dy: Any
) -> list[Any]:
    """The gradients that a kernel can't give: differentiated again, or in a graph."""
    if executing_eagerly():
        tape = Tape([xs[i] for i in wanted])
        try:
            y = _composed(operation, bound, xs)
        finally:
            tape.stop()
        found = iter(tape.gradient([y], [xs[i] for i in wanted], [dy]))
        return [next(found) if i in wanted else None for i in range(len(xs))]
    run = _EagerCall(operation, bound, xs, blind=True)
    call = BoundCall(
        operation,
        bound,
        xs,
        run.outputs,
        grad=run.grad,
        variables=[],
        wanted=wanted,
        captured=False,
    )
    return call.backward(dy)


def _watched(xs: Sequence[Any]) -> list[int]:
    return [i for i, x in enumerate(xs) if is_floating(x) and orders_of([x])]


def _is_blind(operation: Any, bound: Bound, order: int) -> bool:
    """Whether the body may run on aliases; if in doubt, that is found out by doing."""
    if order < 2:
        return not takes_variables(operation)
    return not operation.closure and not captured_by_closure(operation.fn, bound)


def _has_mixed_derivatives(run: _EagerCall, xs: Sequence[Any]) -> bool:
    """Whether the gradient of what is captured is differentiated by the arguments."""
    return orders_of(run.ys) and orders_of([*xs, *run.ys]) == 2


def _record(
    operation: Any,
    bound: Bound,
    xs: Sequence[Any],
    run: _EagerCall,
    captured: Sequence[Any],
) -> Any:
    ys = [alias(y) for y in run.ys]
    outputs = run.with_outputs(ys)
    watched = _watched(xs)
    mine = [(variable, tf.convert_to_tensor(variable)) for variable in run.variables]
    call = BoundCall(
        operation,
        bound,
        xs,
        outputs,
        grad=run.grad,
        variables=mine,
        wanted=[*watched, *range(len(xs), len(xs) + len(mine))],
        captured=bool(captured),
        check=None if run.blind else check_of(operation, bound, xs, run.grad, run.ys),
    )
    inputs = [*xs, *(value for _, value in mine), *captured]
    forward = call.forward(ys, inputs)
    record_operation(operation.name, ys, inputs, call.backward, forward)
    return outputs


class _EagerCall:
    """One run of a body: what it returned, as tensors, and what it captured.

    `ys` are the outputs that have gradients, `variables` those that the rule speaks
    for.
    """

    __slots__ = (
        "blind", "grad", "name", "outputs", "tape", "tensors", "variables", "ys",
    )  # fmt: skip

    def __init__(
        self, operation: Any, bound: Bound, xs: Sequence[Any], *, blind: bool
    ) -> None:
        self.name, self.blind = operation.name, blind
        if blind:
            self.tensors: list[Any] = []
            outputs, self.grad = self._run(operation, bound, [alias(x) for x in xs])
        else:
            self.tensors = followed(captured_by_closure(operation.fn, bound))
            with Uses([*xs, *self.tensors]) as uses:
                outputs, self.grad = self._run(operation, bound, xs)
            hidden = uses.followed()
            if hidden:
                self.tensors += hidden
                outputs, self.grad = self._run(operation, bound, xs)
        self.outputs = outputs = _as_tensors(outputs, operation.name)
        if type(outputs) is EagerTensor:
            self.ys = [outputs] if is_floating(outputs) else []
        else:
            self.ys = [y for y in trees.leaves(outputs) if has_gradient(y)]
        rule = self.grad or operation.vjp_rule
        taken = rule is not None and arity_of(rule).variables
        self.variables = self.tape.variables() if taken else []

    def _run(self, operation: Any, bound: Bound, xs: Sequence[Any]) -> Any:
        self.tape = Tape(self.tensors)
        try:
            return run_body(operation, bound.with_leaves(xs))
        finally:
            self.tape.stop()

    def follow_sources(self) -> list[Any]:
        """The outputs as far as they depend on what is captured, recorded as such."""
        handles = [] if self.variables else [v.handle for v in self.tape.variables()]
        sources, ys, tape = [*handles, *self.tensors], self.ys, self.tape
        if not sources or not ys:
            return []
        parts = [alias(y) for y in ys]
        record_operation(
            f"{self.name}/captured",
            parts,
            sources,
            lambda *dys: tape.gradient(ys, sources, list(dys)),
        )
        return parts

    def with_outputs(self, ys: Sequence[Any]) -> Any:
        """The outputs with others in the places of those that have gradients."""
        if type(self.outputs) is EagerTensor:
            return ys[0]
        rest = iter(ys)
        return trees.map(lambda y: next(rest) if has_gradient(y) else y, self.outputs)


def _as_tensors(outputs: Any, name: str) -> Any:
    if type(outputs) is EagerTensor:
        return outputs
    return trees.map(lambda y: as_output(y, name), outputs)
