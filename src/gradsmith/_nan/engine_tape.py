"""A tape that tells of each operation, of the bodies and rules inside, and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .._application import Application
from .._gradient_tape import GradientTape
from .._rule import Elementwise
from .._subject import replaced
from .._tape import Node, Traced, state
from .._tensor import unwrap
from ..frameworks import numpy as adapter
from .arrays import plain, telling, telling_class
from .places import place_here
from .steps import Call, Seen, seen
from .watch import Watch

_CHOOSERS = {"where", "select", "choose", "piecewise", "maximum", "minimum", "clip"}


def key(x: Any) -> Any:
    """By which an array is known again, also as a view of it."""
    x = unwrap(x)
    if isinstance(x, np.ndarray):
        return (x.__array_interface__["data"][0], x.shape)
    return id(x)


class WatchingTape(GradientTape):
    """A tape that tells a watch of each operation, and of its pullback."""

    def __init__(self, watch: Watch) -> None:
        super().__init__(persistent=True)
        self.lifts = self.records_one = False
        self.watcher = watch
        self.phase = "forward"

    def record(
        self, rule: Any, inputs: Sequence[Any], call: Any, kept: Any, y: Any
    ) -> None:
        super().record(rule, inputs, call, kept, y)
        ys = [y] if isinstance(y, Traced) else list(y)
        ins, outs = seen(inputs, key, "x"), seen(ys, key, "y")
        name = rule.name + f" (in {state.inside})" * bool(state.inside)
        call = Call(
            name, self.phase, place_here(), ins, outs,
            elementwise=isinstance(rule, Elementwise),
            selects=name.partition(" ")[0].rpartition(".")[2] in _CHOOSERS,
            whole=not hasattr(rule, "fn"),
        )  # fmt: skip
        self.watcher.saw(call)
        node = _node_of(ys, self.key)
        if node is not None:
            _wrap(node, call, _kept(rule, call), self.watcher)


def _node_of(ys: Sequence[Traced], key: Any) -> Node | None:
    """The node that a call left on its outputs; several have one together."""
    marks = [y.marks[key] for y in ys if y.marks and key in y.marks]
    if not marks:
        return None
    return marks[0] if len(ys) == 1 else marks[0].parents[0]


def _kept(rule: Any, call: Call) -> list[Seen]:
    """What the pullback computes from."""
    if isinstance(rule, Elementwise):
        wanted = {j for wants in rule.wants for j in wants}
        ins = [seen for j, seen in enumerate(call.ins) if j in wanted]
        return [*ins, *(call.outs if -1 in wanted else ())]
    return [*call.ins, *(call.outs if getattr(rule, "saves_y", True) else ())]


def _wrap(node: Node, call: Call, kept: list[Seen], watch: Watch) -> None:
    """Let a node tell of its pullback; a cotangent is known by the node it goes to."""
    pull = node.pull

    def told(dy: Any, needs: Any) -> Any:
        watch.enter()
        dxs = pull(dy, needs)
        dys = dy.values() if isinstance(dy, dict) else [dy]
        ins = seen(dys, lambda _: node, "dy")
        pairs = zip(node.parents, dxs, strict=True)
        outs = [Seen("dx", dx, parent) for parent, dx in pairs if dx is not None]
        watch.saw(call.back([*ins, *kept], outs))
        return dxs

    node.pull = told


@contextmanager
def looking_into(tape: WatchingTape) -> Iterator[None]:
    """Run the bodies and the rules of operations on arrays that tell."""
    run_body, call_rule, watch = adapter.run_body, Application.call_rule, tape.watcher

    def told(name: str, xs: Sequence[Any], ys: Sequence[Any], each: bool) -> None:
        xs = [x for x in xs if isinstance(x, (np.ndarray, np.generic, float))]
        ins, outs = seen(xs, key, "x"), seen(ys, key, "y")
        watch.saw(Call(name, tape.phase, place_here(), ins, outs, elementwise=each))

    cls = telling_class(told)

    def body(operation: Any, bound: Any) -> Any:
        watch.enter()
        leaves = [telling(x, cls) for x in bound.leaves]
        outputs, grad = run_body(operation, bound.with_leaves(leaves))
        return plain(outputs), grad

    def rule(self: Any, what: str, fn: Any, args: Any, kwargs: Any) -> Any:
        args = [telling(x, cls) for x in args]
        return plain(call_rule(self, what, fn, args, telling(kwargs, cls)))

    with replaced(adapter, run_body=body), replaced(Application, call_rule=rule):
        yield
