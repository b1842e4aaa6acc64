"""The nodes that carry rules in graphs, found by name as long as their graphs live.

TensorFlow looks the gradient of a node up by the node's attribute `_gradient_op_type`:
when a graph is differentiated, and when a SavedModel is written, which keeps a gradient
for each node. `tf.custom_gradient` registers a name for each node, for ever, and with
it the graph. Here a graph holds its nodes, the nodes hold their rules, and a name is
known as long as they do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

from ....core.errors import UnsupportedOperationError
from ..private import (
    default_graph,
    give_gradient,
    gradients_in_graph,
    identities,
    in_forward_mode,
    resolve_gradients_by,
    tapes_see,
)
from .rules import BoundCall
from .specs import is_floating
from .vectorized import vectorize
from .walk import captured_by

# Of this process alone: a graph from another one must not find our rules by its names
_PREFIX = f"gradsmith/{uuid4().hex}/"
_numbers = count()
_alive: WeakValueDictionary[str, GraphNode] = WeakValueDictionary()


def _find(name: str) -> Any:
    node = _alive.get(name)
    return None if node is None else node.gradient


resolve_gradients_by(_find, _PREFIX)


class GraphNode:
    """An operation of a graph that passes tensors on and has a gradient of its own."""

    def __init__(self, tensors: Sequence[Any]) -> None:
        self.name = f"{_PREFIX}{next(_numbers)}"
        _alive[self.name] = self
        self.outputs = identities(tensors, self.name)
        op = self.outputs[0].op
        give_gradient(op, self.gradient)
        op.pfor_converter = self.convert

    def gradient(self, op: Any, *dys: Any) -> list[Any]:
        """The gradients of the tensors that it passes on."""
        raise NotImplementedError

    def convert(self, loop: Any) -> Any:
        """The node of a loop body as one for all iterations (tf.vectorized_map)."""
        return vectorize(self.gradient, loop, Mapped)


class Mapped(GraphNode):
    """A node that stands for those of all iterations of a loop."""

    def __init__(self, tensors: Sequence[Any], gradient: Callable[..., Any]) -> None:
        self.mapped = gradient
        super().__init__(tensors)

    def gradient(self, op: Any, *dys: Any) -> list[Any]:
        return self.mapped(*dys)


class Site(GraphNode):
    """A call of an operation in a graph; `ys` are its outputs."""

    call: BoundCall

    def __init__(
        self,
        ys: Sequence[Any],
        own: Sequence[Any],
        sources: Sequence[Any],
        source_gradients: Callable[..., list[Any]],
    ) -> None:
        self.wanted = [i for i, x in enumerate(own) if is_floating(x)]
        self.source_gradients = source_gradients
        self.own = len(own)
        super().__init__([*ys, *own, *sources])
        self.ys = self.outputs[: len(ys)]

    def gradient(self, op: Any, *dys: Any) -> list[Any]:
        k = len(self.ys)
        dys, call, copied = dys[:k], self.call, ()
        if op is not None and op.graph is not self.ys[0].graph:
            _refuse_copies(call)
            xs = op.inputs[k : k + call.arrays]
            call = call.at(xs, op.outputs[:k])
            copied = (op.inputs[:k], op.inputs[k + self.own :], xs)
        if op is None:  # a SavedModel is written, which keeps no gradients of gradients
            own = self._gradients(call, dys)
        else:
            own = self._transposable_gradients(call, dys)
        return [*(None for _ in dys), *own, *self.source_gradients(dys, *copied)]

    def _transposable_gradients(self, call: BoundCall, dys: Sequence[Any]) -> list[Any]:
        """The gradients, such that their derivative in dys is by the jvp, if there is.

        Forward mode through a graph is the transpose of its gradient. If that is not
        linear, forward mode must be what is asked for, or it is differentiated again.
        """
        if call.application.vjp is None:
            return self._gradients(call, dys)
        if not call.operation.linear and in_forward_mode() and not call.has_jvp:
            call.refuse()
        if call.has_jvp and (call.operation.linear or in_forward_mode()):
            start = default_graph().version + 1  # the last operation's number
            found = self._gradients(call, dys)
            if all(g is None for g in found):
                return found
            return _Transposed(call, found, dys, start).gradients
        return self._gradients(call, dys)

    def _gradients(self, call: BoundCall, dys: Sequence[Any]) -> list[Any]:
        # Who asks for all gradients of a graph may use only some: NaN, not an error
        missing = lambda i: call.filled(i, float("nan"))
        with tapes_see():
            return call.gradients(dys, self.wanted, missing)


def _refuse_copies(call: BoundCall) -> None:
    if call.application.grad is not None:
        raise UnsupportedOperationError(
            "TensorFlow differentiates a copy of a graph with operation "
            f"{call.operation.name!r} in it (a loop or branch under a forward "
            "accumulator, or an imported graph), where what its gradient captured "
            "is unknown: write it in rule form (gs.operation and @op.vjp), which "
            "receives the arguments"
        )


class _Transposed(GraphNode):
    """The gradients of a call, whose transpose in the upstream is the jvp.

    All else that they depend on are further inputs, with its gradient through the rule.
    The arguments and outputs are inputs too, for a rule may be called with tensors of
    the current graph alone.
    """

    def __init__(
        self, call: BoundCall, gradients: Sequence[Any], dys: Sequence[Any], start: int
    ) -> None:
        assert call.application.bound is not None
        self.call = call
        self.places = [i for i, g in enumerate(gradients) if g is not None]
        self.given = [gradients[i] for i in self.places]
        self.dys = dys
        self.rest = captured_by(self.given, dys, start)
        xs = call.application.bound.leaves
        super().__init__([*self.given, *dys, *self.rest, *xs, *call.ys()])
        passed = dict(zip(self.places, self.outputs, strict=False))
        self.gradients = [passed.get(i) for i in range(len(gradients))]

    def gradient(self, op: Any, *dgs: Any) -> list[Any]:
        dgs = dgs[: len(self.given)]
        passed = len(dgs) + len(self.dys) + len(self.rest)
        here, arrays = self.outputs[0].op.inputs[passed:], self.call.arrays
        tangents = dict(zip(self.places, dgs, strict=True))
        given = [tangents.get(i) for i in range(arrays)]
        with tapes_see():
            dys = self.call.at(here[:arrays], here[arrays:]).tangents(given)
            rest = gradients_in_graph(self.given, self.rest, [*dgs], self.dys)
        return [*(None for _ in dgs), *dys, *rest, *(None for _ in here)]
