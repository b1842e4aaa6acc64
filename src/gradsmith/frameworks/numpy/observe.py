"""The engine: a tape reports what it records, and each pullback."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from ...core import trees
from ...core.gradient_tape import GradientTape
from ...core.places import place_here
from ...core.rule import Elementwise
from ...core.tape import INSIDE, NOTHING, Node, Traced
from ...core.tensor import Tensor
from ...operations.info import is_floating
from .._observe import (
    Event,
    Observer,
    Operand,
    inside_operations,
    numpy_key,
    operands,
)

WHERE = "np.where"
_SELECTS = {"where", "select", "choose", "piecewise", "maximum", "minimum", "clip"}


def observe(
    fn: Any,
    args: Any,
    kwargs: Any,
    named: Sequence[tuple[str, Any]],
    observer: Observer,
) -> list[Operand] | None:
    """Run a function and its backward pass, and report each operation."""
    tape = ObservedTape(observer)
    tensors = {id(x): Tensor(x) for _, x in named}
    for name, x in named:
        observer.argument(Operand(name, tensors[id(x)], numpy_key(tensors[id(x)])))
    args, kwargs = trees.map(lambda x: tensors.get(id(x), x), (args, kwargs))
    with inside_operations(observer, lambda: tape.phase):
        with tape:
            for x in tensors.values():
                tape.follow(x)
            returned = fn(*args, **kwargs)
        ys = [*trees.leaves_with_names(returned, "the value")]
        outputs = [Operand(name, y, numpy_key(y)) for name, y in ys if is_floating(y)]
        if not observer.outputs(outputs):
            return []
        targets = [y for _, y in ys if isinstance(y, Traced) and y.dtype.kind in "fc"]
        sources = [(name, tensors[id(x)]) for name, x in named]
        return _backward(tape, targets, sources)


def _backward(tape: ObservedTape, targets: Any, sources: Any) -> list[Operand] | None:
    if all(tape.mark_of(y, reading=False) is None for y in targets):
        return None
    sources += [(v.name or "a variable", v) for v in tape.watched_variables()]
    tape.phase = "backward"
    gradients = tape.gradient(targets, [x for _, x in sources])
    pairs = zip(sources, gradients, strict=True)
    return [Operand(name, dx, tape.mark_of(x)) for (name, x), dx in pairs]


def name_of(rule: Any) -> str:
    """How a message names what a tape records: of an operation, and inside of which."""
    return rule.name + f" (in {INSIDE.get()})" * bool(INSIDE.get())


class ObservedTape(GradientTape):
    """A tape that reports each operation, and its pullback."""

    def __init__(self, observer: Observer) -> None:
        super().__init__(persistent=True)
        self.lifts = self.records_one = False
        self.observer = observer
        self.phase = "forward"

    def record(
        self, rule: Any, inputs: Sequence[Any], call: Any, kept: Any, y: Any
    ) -> bool | None:
        follows = super().record(rule, inputs, call, kept, y)
        ys = [y] if isinstance(y, Traced) else list(y)
        name = name_of(rule)
        event = Event(
            name, self.phase, place_here(),
            operands(inputs, numpy_key, "x"), operands(ys, numpy_key, "y"),
            elementwise=isinstance(rule, Elementwise),
            selects=name.partition(" ")[0].rpartition(".")[2] in _SELECTS,
            encloses=not hasattr(rule, "fn"),
        )  # fmt: skip
        self.observer.event(event)
        node = self._node_of(ys)
        if node is not None:
            node.pull = self._reporting(node, event, _kept(rule, event))
        return follows

    def _node_of(self, ys: Sequence[Traced]) -> Node | None:
        """The node that a call left on its outputs; several have one together."""
        marks = [y.marks[self.key] for y in ys if y.marks and self.key in y.marks]
        if not marks:
            return None
        return marks[0] if len(ys) == 1 else marks[0].parents[0]

    def _reporting(
        self, node: Node, event: Event, kept: list[Operand]
    ) -> Callable[..., Any]:
        """The pullback of a node; the key of a cotangent is the node it goes to."""
        original, observer = copy(node), self.observer
        is_single = isinstance(node.parents, Node)
        node.parents, node.saved = node.inputs(), NOTHING

        def reporting(dy: Any, needs: Any) -> Any:
            observer.enter()
            dxs = original.pulled(dy) if is_single else original.pull(dy, needs)
            dys = dy.values() if isinstance(dy, dict) else [dy]
            pairs = zip(node.parents, dxs, strict=True)
            outs = [Operand("dx", dx, parent) for parent, dx in pairs if dx is not None]
            ins = operands(dys, lambda _: node, "dy")
            observer.event(event.backward([*ins, *kept], outs))
            return dxs

        return reporting


def _kept(rule: Any, event: Event) -> list[Operand]:
    """What the pullback computes from."""
    if isinstance(rule, Elementwise):
        wanted = {j for wants in rule.wants for j in wants}
        inputs = [x for j, x in enumerate(event.inputs) if j in wanted]
        return [*inputs, *(event.outputs if -1 in wanted else ())]
    return [*event.inputs, *(event.outputs if getattr(rule, "saves_y", True) else ())]
