"""Following NaN and inf from the operation that made them to the results.

A framework's module tells of each operation that it sees. Of those whose results are
not all finite a `Step` is kept, which knows from which earlier step its NaN or inf
came; so the way from a result back to the birth is a chain of parents.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .steps import SUM, Call, Result, Seen, Step
from .values import bad_indices, broadcast, is_bad, kind_of, shown


@dataclass
class Watch:
    """What was seen so far; `numpy` makes NumPy's arrays of the framework's."""

    numpy: Callable[[Any], np.ndarray | None]
    steps: list[Step] = field(default_factory=list)
    _origins: dict[Hashable, tuple[Any, Step]] = field(default_factory=dict)
    _masks: dict[Hashable, tuple[Any, Call]] = field(default_factory=dict)
    _inside: list[Step] = field(default_factory=list)

    def given(self, name: str, x: Any, key: Hashable) -> None:
        """Take note of an argument that is not finite to begin with."""
        array = self.numpy(x)
        if array is not None and is_bad(array):
            values = (shown(name, array, bad_indices(array)),)
            step = Step(name, "argument", None, kind_of([array]), values, values)
            self._origins[key] = (x, step)
            self.steps.append(step)

    def saw(self, call: Call) -> None:
        """Take note of an operation."""
        self._pass_masks(call)
        arrays = [(out, self.numpy(out.x)) for out in call.outs]
        bad = [(out, y) for out, y in arrays if y is not None and is_bad(y)]
        inside = self._inside if call.whole else []
        if call.whole:
            self.enter()
        if not bad:
            return
        step = self._made_inside(call, bad, inside) or self._step(call, bad)
        for out, _ in bad:
            self._origins[out.key] = (out.x, step)
        self.steps.append(step)
        if step.parent is None and step.place is not None:
            self._inside.append(step)

    def enter(self) -> None:
        """What is seen from here on is inside of the next whole call."""
        self._inside = []

    def origin_of(self, key: Hashable) -> Step | None:
        """The last step on the way of a value that is not finite."""
        return self._origins[key][1] if key in self._origins else None

    def result(self, name: str, x: Any, key: Hashable) -> Result | None:
        """A value or a gradient, if it is not finite."""
        array = None if x is None else self.numpy(x)
        if array is None or not is_bad(array):
            return None
        return Result(name, kind_of([array]), self._origin(key, array))

    def gradient(self, name: str, dx: Any, key: Hashable) -> Result | None:
        """The gradient of an argument; if none of its parts is to blame, their sum."""
        found = self.result(f"the gradient of {name}", dx, key)
        if found is not None and found.step is None:
            array = self.numpy(dx)
            assert array is not None
            values = (shown("dx", array, bad_indices(array)),)
            step = Step(SUM, "backward", None, found.kind, outputs=values)
            return found._replace(step=step)
        return found

    def _origin(self, key: Hashable, x: np.ndarray) -> Step | None:
        """The step that an array is from; a callback's result is known by its shape."""
        if key in self._origins:
            return self._origins[key][1]
        made = (s for s in self._inside if s.outputs and s.outputs[0].shape == x.shape)
        return next((step for step in made if step.kind == kind_of([x])), None)

    # --- the parts of `saw`

    def _made_inside(self, call: Call, bad: Any, inside: list[Step]) -> Step | None:
        """The line inside of a rule or a body, which says more than the whole."""
        if not inside or any(is_bad(x) for _, x in self._arrays(call.ins)):
            return None
        known = [self.origin_of(out.key) for out, _ in bad]
        roots = [step.chain()[0] for step in known if step is not None]
        return next((root for root in roots if root in inside), inside[0])

    def _step(self, call: Call, bad: list[tuple[Seen, np.ndarray]]) -> Step:
        ys = [y for _, y in bad]
        ins = self._arrays(call.ins)
        fresh = _born_here(call, ys[0], [x for _, x in ins])
        at, shape = bad_indices(ys[0], fresh), ys[0].shape
        step = Step(
            call.operation,
            call.phase,
            call.place,
            kind_of(ys),
            tuple(shown(seen.name, x, at, shape) for seen, x in ins),
            tuple(shown(out.name, y, bad_indices(y, fresh)) for out, y in bad[:1]),
        )
        dys = [x for seen, x in ins if seen.name.startswith("dy")]
        step.zero_upstream = bool(dys) and all(_is_zero(dy, at, shape) for dy in dys)
        mask = self._mask_of(call)
        if step.zero_upstream and mask is not None:
            step.masked, step.mask, step.chooser = True, mask.place, mask.operation
        bad_ins = [(seen, x) for seen, x in ins if is_bad(x)]
        if fresh is None and bad_ins:
            step.parent = self._parent(call, bad_ins)
        return step

    def _arrays(self, seen: Sequence[Seen]) -> list[tuple[Seen, np.ndarray]]:
        pairs = [(each, self.numpy(each.x)) for each in seen]
        return [(each, x) for each, x in pairs if x is not None]

    def _parent(self, call: Call, bad: list[tuple[Seen, np.ndarray]]) -> Step:
        """Where a bad input came from; NaN before inf, and known before unknown."""
        bad = sorted(bad, key=lambda pair: not np.any(np.isnan(pair[1])))
        for seen, x in bad:
            known = self._origin(seen.key, x)
            if known is not None:
                return known
        seen, x = bad[0]
        values = (shown(seen.name, x, bad_indices(x)),)
        if seen.name.startswith("dy"):
            return Step(SUM, "backward", call.place, kind_of([x]), (), values)
        return Step(
            call.operation, "constant", call.place, kind_of([x]), values, values
        )

    def _pass_masks(self, call: Call) -> None:
        """Gradients that come out of a `where` are known by it from there on."""
        if call.phase == "backward":
            mask = call if call.selects else self._mask_of(call)
            if mask is not None:
                self._masks.update({out.key: (out.x, mask) for out in call.outs})

    def _mask_of(self, call: Call) -> Call | None:
        found = (self._masks.get(seen.key) for seen in call.ins)
        return next((mask for _, mask in filter(None, found)), None)


def _born_here(call: Call, y: np.ndarray, xs: list[np.ndarray]) -> np.ndarray | None:
    """Where an elementwise operation made NaN (or else inf) of finite elements."""
    if not call.elementwise:
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
