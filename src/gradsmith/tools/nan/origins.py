"""Following NaN and inf from the operation that made them to the results.

Of each observed operation whose results are not all finite a `Step` is kept, which
knows from which earlier step its NaN or inf came; so the way from a result back to the
origin is a chain of parents.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ...core.places import Place
from ...frameworks._observe import SUM, Event, Operand
from .values import Value, bad_indices, broadcast, is_bad, kind_of, shown


@dataclass
class Step:
    """An operation whose result was NaN or inf, and where it had that from."""

    operation: str
    phase: str  # "forward", "backward", "argument", "constant"
    place: Place | None
    kind: str  # "nan" or "inf"
    inputs: tuple[Value, ...] = ()
    outputs: tuple[Value, ...] = ()
    parent: Step | None = None
    masked: bool = False  # a `where` had taken the other branch
    mask: Place | None = None  # and where that is
    chooser: str = ""  # and what it is called
    zero_upstream: bool = False  # the gradient that came in is 0

    def chain(self) -> list[Step]:
        """All steps on the way here, the first one first."""
        steps: list[Step] = [self]
        while steps[-1].parent is not None:
            steps.append(steps[-1].parent)
        return steps[::-1]


class NonFinite(NamedTuple):
    """A value or a gradient that is not finite, and the last step on its way."""

    name: str
    kind: str
    step: Step | None


@dataclass
class Origins:
    """An observer that knows of each NaN and inf where it came from.

    `floats` makes NumPy arrays of the framework's, None of those that can't be NaN.
    """

    floats: Callable[[Any], np.ndarray | None]
    steps: list[Step] = field(default_factory=list)
    results: list[NonFinite] = field(default_factory=list)
    _steps: dict[Hashable, tuple[Any, Step]] = field(default_factory=dict)
    _masks: dict[Hashable, tuple[Any, Event]] = field(default_factory=dict)
    _inside: list[Step] = field(default_factory=list)

    # --- what is observed

    def argument(self, operand: Operand) -> None:
        """Keep a step for an argument that is not finite to begin with."""
        array = self.floats(operand.x)
        if array is not None and is_bad(array):
            values = (shown(operand.name, array, bad_indices(array)),)
            kind = kind_of([array])
            step = Step(operand.name, "argument", None, kind, values, values)
            self._steps[operand.key] = (operand.x, step)
            self.steps.append(step)

    def enter(self) -> None:
        self._inside = []

    def event(self, event: Event) -> None:
        """Keep a step if the results of an operation are not finite."""
        self._pass_masks(event)
        bad = [(out, y) for out, y in self._arrays(event.outputs) if is_bad(y)]
        inside = self._inside if event.encloses else []
        if event.encloses:
            self.enter()
        if not bad:
            return
        step = self._made_inside(event, bad, inside) or self._step(event, bad)
        for out, _ in bad:
            self._steps[out.key] = (out.x, step)
        self.steps.append(step)
        if step.parent is None and step.place is not None:
            self._inside.append(step)

    def outputs(self, outputs: Sequence[Operand]) -> bool:
        """Go on with the backward pass if the value is finite."""
        found = [self._result(y.name, y) for y in outputs]
        self.results = [result for result in found if result is not None]
        return not self.results

    def gradients(self, gradients: Sequence[Operand]) -> None:
        """Those that are not finite; if no operation is to blame, the sum of parts."""
        for dx in gradients:
            found = self._result(f"the gradient of {dx.name}", dx)
            if found is not None:
                step = found.step or self._sum(dx.x, None, "dx")
                self.results.append(found._replace(step=step))

    # --- where it came from

    def _result(self, name: str, operand: Operand) -> NonFinite | None:
        array = None if operand.x is None else self.floats(operand.x)
        if array is None or not is_bad(array):
            return None
        return NonFinite(name, kind_of([array]), self._origin(operand.key, array))

    def _sum(self, x: Any, place: Place | None, name: str) -> Step:
        array = self.floats(x)
        assert array is not None
        values = (shown(name, array, bad_indices(array)),)
        return Step(SUM, "backward", place, kind_of([array]), outputs=values)

    def _origin(self, key: Hashable, x: np.ndarray) -> Step | None:
        """The step that an array is from; a callback's result is known by its shape."""
        if key in self._steps:
            return self._steps[key][1]
        made = (s for s in self._inside if s.outputs and s.outputs[0].shape == x.shape)
        return next((step for step in made if step.kind == kind_of([x])), None)

    def _made_inside(
        self, event: Event, bad: list[tuple[Operand, np.ndarray]], inside: list[Step]
    ) -> Step | None:
        """The line inside of a rule or a body, which says more than the whole."""
        if not inside or any(is_bad(x) for _, x in self._arrays(event.inputs)):
            return None
        known = [self._steps[out.key][1] for out, _ in bad if out.key in self._steps]
        roots = [step.chain()[0] for step in known]
        return next((root for root in roots if root in inside), inside[0])

    def _step(self, event: Event, bad: list[tuple[Operand, np.ndarray]]) -> Step:
        ys = [y for _, y in bad]
        inputs = self._arrays(event.inputs)
        fresh = _born_here(event, ys[0], [x for _, x in inputs])
        at, shape = bad_indices(ys[0], fresh), ys[0].shape
        step = Step(
            event.operation,
            event.phase,
            event.place,
            kind_of(ys),
            tuple(shown(operand.name, x, at, shape) for operand, x in inputs),
            tuple(shown(out.name, y, bad_indices(y, fresh)) for out, y in bad[:1]),
        )
        dys = [x for operand, x in inputs if operand.name.startswith("dy")]
        step.zero_upstream = bool(dys) and all(_is_zero(dy, at, shape) for dy in dys)
        mask = self._mask_of(event)
        if step.zero_upstream and mask is not None:
            step.masked, step.mask, step.chooser = True, mask.place, mask.operation
        bad_inputs = [(operand, x) for operand, x in inputs if is_bad(x)]
        if fresh is None and bad_inputs:
            step.parent = self._parent(event, bad_inputs)
        return step

    def _arrays(self, operands: Sequence[Operand]) -> list[tuple[Operand, np.ndarray]]:
        pairs = [(operand, self.floats(operand.x)) for operand in operands]
        return [(operand, x) for operand, x in pairs if x is not None]

    def _parent(self, event: Event, bad: list[tuple[Operand, np.ndarray]]) -> Step:
        """Where a bad input came from; NaN before inf, and known before unknown."""
        bad = sorted(bad, key=lambda pair: not np.any(np.isnan(pair[1])))
        for operand, x in bad:
            known = self._origin(operand.key, x)
            if known is not None:
                return known
        operand, x = bad[0]
        if operand.name.startswith("dy"):
            return self._sum(x, event.place, operand.name)
        values = (shown(operand.name, x, bad_indices(x)),)
        kind = kind_of([x])
        return Step(event.operation, "constant", event.place, kind, values, values)

    def _pass_masks(self, event: Event) -> None:
        """Gradients that come out of a `where` are known by it from there on."""
        if event.phase == "backward":
            mask = event if event.selects else self._mask_of(event)
            if mask is not None:
                self._masks.update({out.key: (out.x, mask) for out in event.outputs})

    def _mask_of(self, event: Event) -> Event | None:
        found = (self._masks.get(operand.key) for operand in event.inputs)
        return next((mask for _, mask in filter(None, found)), None)


def _born_here(event: Event, y: np.ndarray, xs: list[np.ndarray]) -> np.ndarray | None:
    """Where an elementwise operation made NaN (or else inf) of finite elements."""
    if not event.elementwise:
        return None
    try:
        xs = [np.broadcast_to(x, y.shape) for x in xs]
    except ValueError:
        return None
    fresh = np.isnan(y) if np.any(np.isnan(y)) else ~np.isfinite(y)
    for x in xs:
        fresh = fresh & np.isfinite(x)
    return fresh if np.any(fresh) else None


def _is_zero(dy: np.ndarray, at: Sequence[tuple[int, ...]], shape: Any) -> bool:
    """Whether the gradient that comes in is 0 where the one that goes out is bad.

    That of a reduction has the first axes alone, or ones in place of the others.
    """
    if dy.shape == shape[: dy.ndim]:
        return all(dy[index[: dy.ndim]] == 0 for index in at)
    places = broadcast(dy, at, shape)
    return bool(np.all(dy == 0)) if not places else all(dy[i] == 0 for i in places)
