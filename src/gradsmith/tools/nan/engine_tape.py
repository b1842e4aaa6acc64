"""A tape that tells of each operation, and of each on the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.gradient_tape import GradientTape
from ...core.places import place_here
from ...core.rule import Elementwise
from ...core.tape import Node, Traced, state
from .inside import key
from .steps import Call, Seen, seen
from .watch import Watch

_CHOOSERS = {"where", "select", "choose", "piecewise", "maximum", "minimum", "clip"}


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
