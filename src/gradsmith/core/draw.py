"""The graph of a tape as boxes, from what the tape has recorded already.

Nodes hang on the values that were computed, and know neither shape nor dtype; both are
those of the value's cotangent. So the rules are run once, on ones, which also shows
where there is no gradient.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from . import trees
from .cotangent import spec_text
from .errors import TapeError
from .explain import Stop
from .places import user_frame
from .rule import Rule, find_rule
from .tape import Node, Parts, Traced, is_output, only


def boxes_of(tape: Any, target: Any) -> list[Any]:
    """The boxes of what leads to a target, or of all that is alive; inputs first."""
    from ..report.drawing import STOP, Box  # for drawings alone

    names = _names()
    values = _alive(tape, names)
    targets = [] if target is None else trees.leaves(target)
    marks: list[Node | None] = [
        tape.mark_of(y, reading=False) if isinstance(y, Traced) else None
        for y in targets
    ]
    ends = [node for node in marks if node]
    nodes = _before(ends if ends and all(marks) else values)
    if not any(node.inputs() for node in nodes):
        raise TapeError(
            "there is nothing to draw: no result that this tape has recorded is alive. "
            "Pass the target whose graph you want: tape.draw(loss)."
        )
    used = {parent for node in nodes for parent in node.inputs()}
    ends = ends or [node for node in nodes if node not in used]
    graph = _Graph(nodes, ends, values, names)
    boxes = graph.boxes()
    usual = {getattr(find_rule(fn), "why", "") for fn in _WITHOUT}
    stops = [stop for stop in tape.stops.values() if stop.why not in usual]
    lost = [y for y, node in zip(targets, marks, strict=True) if not node]
    note = "tape.explain says why"
    return [
        *boxes,
        *map(graph.stop, stops),
        *(
            Box(names.get(id(y), "target"), "not followed", STOP, note=note)
            for y in lost
        ),
    ]


# What nobody expects a gradient of: truth values, positions, counts
_WITHOUT: tuple[Any, ...] = (np.greater, np.argmax, np.count_nonzero, np.shape)


def title_of(target: Any) -> str:
    """What is drawn, as the user calls it."""
    if target is None:
        return "The graph of the tape"
    names = _names()
    named = [names.get(id(y), "the target") for y in trees.leaves(target)]
    return f"The graph of {', '.join(dict.fromkeys(named))}"


def _alive(tape: Any, names: dict[int, str]) -> dict[Node, Traced]:
    """The values that this tape has recorded, as far as somebody holds them.

    Others may stand for the user's in what rules have saved: these have no names.
    """
    found: dict[Node, Traced] = {}
    for x in gc.get_objects():
        # By the type: whoever asks a dead proxy for its class gets an error. What an
        # exception has left half made has no marks.
        if issubclass(type(x), Traced) and (marks := getattr(x, "marks", None)):
            node = marks.get(tape.key)
            if isinstance(node, Node) and (node not in found or id(x) in names):
                found[node] = x
    return found | {node: x for x, node in tape.leaves.values()}


def _before(ends: Iterable[Node]) -> list[Node]:
    """Nodes and all that they were computed from, in the order of recording."""
    seen = set(ends)
    stack = list(seen)
    while stack:
        new = [parent for parent in stack.pop().inputs() if parent not in seen]
        seen.update(new)
        stack.extend(new)
    # An operation comes after the inputs that were watched while it ran
    return sorted(seen, key=lambda node: (bool(node.inputs()), node.index))


class _Graph:
    """The nodes of a tape, and what becomes of ones on their way back through them."""

    def __init__(
        self,
        nodes: Sequence[Node],
        ends: Sequence[Node],
        values: dict[Node, Traced],
        names: dict[int, str],
    ) -> None:
        self.ends, self.values, self.names = set(ends), values, names
        self.specs: dict[Node, Any] = dict(values)
        self.silent: dict[Node, set[Node]] = {}
        self.failed: dict[Node, str] = {}
        with only(()), np.errstate(all="ignore"):
            self._walk({node: np.ones_like(values[node].value) for node in ends})
        # Of several outputs, only the operation has a box
        shown = [node for node in nodes if not is_output(node)]
        self.place = {node: i for i, node in enumerate(shown)}
        self.place |= {
            node: self.place[node.inputs()[0]] for node in nodes if is_output(node)
        }
        self.outputs: dict[int, list[Node]] = {}
        for node, i in self.place.items():
            self.outputs.setdefault(i, []).append(node)

    def _walk(self, waiting: dict[Node, Any]) -> None:
        while waiting:
            node = max(waiting, key=lambda node: node.index)
            dy = waiting.pop(node)
            if not isinstance(dy, Parts):
                self.specs.setdefault(node, dy)
            if node.pull is None:  # used up, or an input
                continue
            try:
                dxs = node.pulled(dy)
            except Exception as error:
                self.failed[node] = f"{type(error).__name__}: {error}"
                continue
            for parent, dx in zip(node.inputs(), dxs, strict=True):
                if dx is None:
                    self.silent.setdefault(node, set()).add(parent)
                else:
                    waiting[parent] = waiting[parent] + dx if parent in waiting else dx

    def boxes(self) -> list[Any]:
        from ..report.drawing import Box

        return [
            Box(
                self._name(nodes),
                ", ".join(self._described(node) for node in nodes).strip(", "),
                self._kind(nodes),
                tuple(self.place[p] for p in nodes[0].inputs()),
                tuple(self.place[p] for p in self.silent.get(nodes[0], ())),
                self.failed.get(nodes[0], ""),
            )
            for _, nodes in sorted(self.outputs.items())
        ]

    def _name(self, nodes: Sequence[Node]) -> str:
        """As the user wrote it: `loss = np.sum`."""
        named = [
            name
            for node in nodes
            if node in self.values
            and (name := self.names.get(id(self.values[node]), ""))
        ]
        rule = nodes[0].rule
        if rule is None:
            own = getattr(self.values.get(nodes[0]), "name", "")
            return next(iter(named), own or "input")
        operation = getattr(rule, "operation", rule)
        return f"{', '.join(named)} = {operation.name}" if named else operation.name

    def _described(self, node: Node) -> str:
        x = self.specs.get(node)
        return spec_text(x) if x is not None else ""

    def _kind(self, nodes: Sequence[Node]) -> str:
        from ..report.drawing import CUSTOM, INPUT, RESULT, STOP

        if nodes[0].rule is None:
            return INPUT
        if nodes[0] in self.failed:
            return STOP
        if not isinstance(nodes[0].rule, Rule):
            return CUSTOM
        return RESULT if self.ends.intersection(nodes) else ""

    def stop(self, stop: Stop) -> Any:
        """Where a value lost its gradient; below it, if it is still there."""
        from ..report.drawing import STOP, Box

        near = [each() for each in (stop.node, stop.parent) if each]
        parents = tuple(self.place[node] for node in near if node in self.place)[:1]
        where = f"line {stop.line}" if stop.line else ""
        return Box(stop.where, where, STOP, parents, parents, str(stop))


def _names() -> dict[int, str]:
    """What the user's function calls its tensors."""
    frame = user_frame()
    known = {} if frame is None else frame.f_locals
    return {
        id(x): name
        for name, x in known.items()
        if issubclass(type(x), Traced) and not name.startswith("_")
    }
