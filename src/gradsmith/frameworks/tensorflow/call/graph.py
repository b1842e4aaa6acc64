"""Operations in a graph: a node whose gradient is the rule.

The node passes the outputs on, and has the arguments and what the body captured as
further inputs, so that the gradient of a whole graph finds them. Tapes and accumulators
that are active while a function is traced are told as in eager mode.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ....core import trees
from ....core.arity import arity_of
from ....operations.application import run_body
from ....operations.parameters import Bound
from ..._captured import with_captured
from ..private import (
    SymbolicTensor,
    VariableWatcher,
    alias,
    could_record,
    default_graph,
    gradients_in_graph,
    orders_of,
    outside_of,
    record_operation,
)
from .captured import captured_by_closure
from .rules import BoundCall
from .sites import Site
from .specs import as_output, has_gradient, is_floating
from .walk import captured_by, reads_of


def call(operation: Any, bound: Bound, xs: Sequence[Any]) -> Any:
    """Run an operation while a graph is built."""
    xs = [_in_this_graph(x) for x in xs]
    recorded = could_record()
    # The gradient of what is captured depends on the arguments too
    seen = operation.closure or (recorded and captured_by_closure(operation.fn, bound))
    run = _GraphCall(operation, bound, xs if seen else [alias(x) for x in xs])
    if run.sources and recorded and not seen:
        run = _GraphCall(operation, bound, xs)
    if not run.ys:
        return run.outputs
    mine = [(variable, tf.convert_to_tensor(variable)) for variable in run.variables]
    own = [*xs, *(value for _, value in mine)]
    site = Site(run.ys, own, run.sources, run.source_gradients)
    outputs = run.with_outputs(site.ys)
    captured = run.follow_sources() if recorded else []
    site.call = call = BoundCall(
        operation,
        bound,
        xs,
        outputs,
        grad=_localized(run.grad),
        variables=mine,
        wanted=[i for i, x in enumerate(own) if is_floating(x) and orders_of([x])],
        captured=bool(captured),
    )
    inputs = [*own, *captured]
    forward = call.forward(site.ys, inputs)
    record_operation(operation.name, site.ys, inputs, call.backward, forward)
    return outputs


def _in_this_graph(x: Any) -> Any:
    if type(x) is SymbolicTensor and x.graph is default_graph():
        return x
    return tf.identity(x)


def _localized(grad: Any) -> Any:
    """A gradient function with what it captured of other graphs brought into this one.

    When it is called, those may be out of reach: the gradient of a gradient is built in
    a third graph.
    """
    graph = default_graph()

    def local(x: Any) -> Any:
        foreign = type(x) is SymbolicTensor and x.graph is not graph
        return tf.identity(x) if foreign else x

    return with_captured(grad, local)


class _GraphCall:
    """One run of a body: what it returned, as tensors, and what it captured.

    `ys` are the outputs that have gradients, `variables` those that the rule speaks
    for, and `sources` the tensors that the body captured otherwise.
    """

    __slots__ = ("grad", "name", "outputs", "sources", "variables", "xs", "ys")

    def __init__(self, operation: Any, bound: Bound, xs: Sequence[Any]) -> None:
        self.name = operation.name
        self.xs = xs
        start = default_graph().version + 1  # the last operation's number
        with VariableWatcher() as watcher:
            outputs, self.grad = run_body(operation, bound.with_leaves(xs))
        self.outputs = trees.map(lambda y: self._output(y), outputs)
        self.ys = [y for y in trees.leaves(self.outputs) if has_gradient(y)]
        rule = self.grad or operation.vjp_rule
        taken = rule is not None and arity_of(rule).variables
        self.variables = list(watcher.watched_variables()) if taken else []
        spoken_for = reads_of(self.variables)
        self.sources = [
            source
            for source in captured_by(self.ys, xs, start)
            if not spoken_for(source)
        ]

    def _output(self, y: Any) -> Any:
        y = as_output(y, self.name)
        return _in_this_graph(y) if isinstance(y, tf.Tensor) else y

    def source_gradients(
        self, dys: Sequence[Any], ys: Any = None, sources: Any = None, xs: Any = None
    ) -> list[Any]:
        """The gradients of the sources, in this graph or in a copy of it."""
        if not self.sources:
            return []
        return gradients_in_graph(
            ys or self.ys, sources or self.sources, list(dys), xs or self.xs
        )

    def follow_sources(self) -> list[Any]:
        """The outputs as far as they depend on what is captured, recorded as such."""
        if not self.sources:
            return []
        parts = [alias(y) for y in self.ys]
        record_operation(
            f"{self.name}/captured",
            parts,
            [x if orders_of([x]) else outside_of(x) for x in self.sources],
            lambda *dys: self.source_gradients(dys),
        )
        return parts

    def with_outputs(self, ys: Sequence[Any]) -> Any:
        """The outputs with others in the places of those that have gradients."""
        rest = iter(ys)
        return trees.map(lambda y: next(rest) if has_gradient(y) else y, self.outputs)
