"""TensorFlow: callbacks report each eager operation, and each gradient function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import tensorflow as tf

from ...core import trees
from ...core.places import Place, place_here
from ...operations.info import is_floating
from .._observe import SUM, Event, Observer, Operand, inside_operations, operands
from . import private

WHERE = "tf.where"
_SELECTS = {"Select", "SelectV2", "Maximum", "Minimum", "ClipByValue", "DynamicStitch"}
_ELEMENTWISE = {
    "Acos", "Acosh", "AddV2", "Asin", "Asinh", "Atan", "Atanh", "Cos", "Cosh", "Div",
    "DivNoNan", "Erf", "Erfinv", "Exp", "Expm1", "Log", "Log1p", "Mul", "Neg", "Pow",
    "RealDiv", "Reciprocal", "Rsqrt", "SelectV2", "Sigmoid", "Sin", "Sinh", "Softplus",
    "Sqrt", "Square", "Sub", "Tan", "Tanh", "Xlogy",
}  # fmt: skip
# What they call was observed while they ran.
_CALLBACKS = {"EagerPyFunc", "PyFunc", "PyFuncStateless"}


def observe(
    fn: Any,
    args: Any,
    kwargs: Any,
    named: Sequence[tuple[str, Any]],
    observer: Observer,
) -> list[Operand] | None:
    """Run a function and its backward pass, and report each operation."""
    for name, x in named:
        observer.argument(Operand(name, x, _key(x)))
    seen = _Operations(observer)
    with seen.reported(), inside_operations(observer, lambda: seen.phase):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch([x for _, x in named])
            returned = fn(*args, **kwargs)
        ys = [*trees.leaves_with_names(returned, "the value")]
        with seen.paused():
            if not observer.outputs([Operand(name, y, _key(y)) for name, y in ys]):
                return []
        targets = [y for _, y in ys if is_floating(y) and isinstance(y, tf.Tensor)]
        return _backward(seen, tape, targets, named)


def _backward(
    seen: _Operations, tape: Any, targets: Any, named: Any
) -> list[Operand] | None:
    known = {id(x) for _, x in named}
    sources = [*named]
    sources += [(v.name, v) for v in tape.watched_variables() if id(v) not in known]
    seen.phase = "backward"
    gradients = tape.gradient(targets, [x for _, x in sources])
    if all(dx is None for dx in gradients):
        return None
    pairs = zip(sources, gradients, strict=True)
    return [Operand(name, dx, _key(dx)) for (name, _), dx in pairs]


def _key(x: Any) -> Any:
    x = x.values if isinstance(x, tf.IndexedSlices) else x
    return getattr(x, "_id", None) or id(x)


class _Operations:
    """The eager operations and gradient functions that run, as events."""

    def __init__(self, observer: Observer) -> None:
        self.observer = observer
        self.phase = "forward"
        self.is_paused = False
        self.depth = 0  # how many gradient functions are running
        # The tape keeps this very tuple of an operation until its gradient is taken.
        self.events: dict[int, tuple[Any, Event]] = {}

    @contextmanager
    def reported(self) -> Iterator[None]:
        with (
            private.functions_run_eagerly(),
            private.after_operations(self._operation),
            private.around_gradients(self._gradient),
        ):
            yield

    @contextmanager
    def paused(self) -> Iterator[None]:
        """While the observer runs: that is no operation of the user's."""
        before, self.is_paused = self.is_paused, True
        try:
            yield
        finally:
            self.is_paused = before

    def _operation(self, name: str, inputs: Any, attrs: Any, outputs: Any) -> None:
        if self.is_paused:
            return
        place = self._place()
        if place is None and self.depth:
            return  # the gradient function is reported as a whole
        if place is None and name in ("AddN", "AddV2"):
            name = SUM
        xs, ys = operands(inputs, _key, "x"), operands(outputs, _key, "y")
        facts = name in _ELEMENTWISE, name in _SELECTS, name in _CALLBACKS
        event = Event(name, self.phase, place, xs, ys, *facts)
        self.events[id(attrs)] = (attrs, event)
        self._report(event)

    def _place(self) -> Place | None:
        """In the backward pass a line of a rule: who called us is not to blame."""
        within = [_backward.__code__] if self.phase == "backward" else []
        return place_here(within=within)

    def _gradient(self, compute: Any, name: str, attrs: Any, *rest: Any) -> Any:
        _, inputs, outputs, dys, *_ = rest
        self.observer.enter()
        self.depth += 1
        try:
            dxs = compute(name, attrs, *rest)
        finally:
            self.depth -= 1
        if id(attrs) in self.events:
            event = self.events[id(attrs)][1]
            # Nothing is kept of what is not needed.
            kept = [
                *(event.inputs if inputs else ()),
                *(event.outputs if outputs else ()),
            ]
            each = dxs if isinstance(dxs, (list, tuple)) else [dxs]
            ins = operands((dy for dy in dys if dy is not None), _key, "dy")
            outs = operands((dx for dx in each if dx is not None), _key, "dx")
            self._report(event.backward([*ins, *kept], outs))
        return dxs

    def _report(self, event: Event) -> None:
        with self.paused():
            self.observer.event(event)
