"""What MLX's gradient keeps: values of the forward pass that the backward one reads.

MLX has one graph for both. Each operation is traced with its gradient, and what it
computes for the value is told from what it computes for the gradient alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import mlx.core as mx

from ...core import hooks, trees
from ...operations.info import is_floating
from .._observe import Event, Operand
from .._protocol import Residual
from .call.captured import captured_by
from .observe import CallWalk, Entry, observed

NOTES = ("in compiled code MLX may keep less, or what is recomputed",)

# Primitives whose result is what they were given, in another shape
_VIEWS = {
    "Broadcast", "Reshape", "ExpandDims", "Squeeze", "Transpose", "Flatten",
    "Unflatten", "StopGradient", "Copy",
}  # fmt: skip


class _Nobody:
    """An observer that is not interested."""

    def argument(self, operand: Operand) -> None: ...
    def enter(self) -> None: ...
    def event(self, event: Event) -> None: ...
    def outputs(self, outputs: Any) -> bool:
        return False


class _Memory(CallWalk):
    """Knows what the operations with a rule of their own keep for it."""

    def __init__(self, active: list[Any]) -> None:
        super().__init__(_Nobody(), active)
        self.kept_by: list[tuple[Entry, list[Any]]] = []
        self.found: list[Any] | None = None  # what the last body has left for its rule
        self.outputs: dict[int, int] = {}

    def apply(
        self, fn: Any, args: Any, kwargs: Any, name: str, *, custom: bool = False
    ) -> Any:
        entries = self.entries
        if not custom or self.busy or not self.recording:
            return super().apply(fn, args, kwargs, name, custom=custom)
        self.found, known = None, len(entries)
        y = super().apply(fn, args, kwargs, name, custom=True)
        if len(entries) > known:
            self.kept_by.append((entries[-1], self._kept(entries[-1], name)))
        return y

    def _kept(self, entry: Entry, name: str) -> list[Any]:
        if self.found is None or name == "checkpoint":
            return [*entry.ins]
        # What the body returned is given back as another array in the same memory.
        places = self.outputs
        return [entry.outs[places[id(x)]] if id(x) in places else x for x in self.found]

    def body(self, proceed: Any, operation: Any, bound: Any) -> Any:
        """Run a body; those inside of it are not differentiated by their rules."""
        outermost, self.found = self.found is None, self.found or []
        outputs, grad = proceed(operation, bound)
        if outermost:
            ys = [y for y in trees.leaves(outputs) if isinstance(y, mx.array)]
            self.outputs = {id(y): i for i, y in enumerate(ys)}
            self.found = ys if grad is None else captured_by(grad)
        return outputs, grad


def residuals(fn: Any, args: Any, kwargs: Any) -> list[Residual]:
    """The arrays that a gradient keeps."""
    xs = [x for x in trees.leaves((args, kwargs)) if isinstance(x, mx.array)]
    walk = _Memory(xs)
    with observed(walk), hooks.BODY.wrapped(walk.body):
        returned = fn(*args, **kwargs)
    return [*_kept(walk, [id(y) for y in trees.leaves(returned)], {*map(id, xs)})]


def _kept(walk: _Memory, ys: list[int], taken: set[int]) -> Iterator[Residual]:
    """What the operations that lead to the results keep, each array once."""
    needed, same = {*ys}, _same_memory(walk)
    kept_by = {id(entry): kept for entry, kept in walk.kept_by}
    for entry in reversed(walk.entries):
        if not needed & {*map(id, entry.outs)}:
            continue
        needed |= {*map(id, entry.ins)}
        custom = kept_by.get(id(entry))
        kept = _read_by_gradient(walk, entry) if custom is None else _sizes(custom)
        for key, nbytes in kept:
            key = same.get(key, key)
            if key not in taken and nbytes:
                taken.add(key)
                yield Residual(entry.event.operation, entry.event.place, nbytes)


def _same_memory(walk: CallWalk) -> dict[int, int]:
    """Of results that are views, whose memory they see."""
    found: dict[int, int] = {}
    views = {
        "reshape",
        "squeeze",
        "expand_dims",
        "transpose",
        "broadcast_to",
        "flatten",
    }
    for entry in walk.entries:
        name = entry.event.operation.removeprefix("mx.")
        if name in views and len(entry.ins) == 1:
            source = id(entry.ins[0])
            found |= {id(y): found.get(source, source) for y in entry.outs}
    return found


def _sizes(arrays: list[Any]) -> list[tuple[int, int]]:
    return [(id(x), x.nbytes) for x in arrays if isinstance(x, mx.array)]


def _read_by_gradient(walk: CallWalk, entry: Entry) -> list[tuple[Any, int]]:
    """What the gradient of one operation reads, by identity, with its size."""
    at = [i for i, x in enumerate(entry.ins) if walk.is_active(x)]
    outs = [y for y in entry.outs if is_floating(y)]
    n = len(entry.ins)

    def both(*arrays: Any) -> list[Any]:
        ins, dys = [*arrays[:n]], [*arrays[n:]]

        def run(*xs: Any) -> list[Any]:
            places = dict(zip(at, xs, strict=True))
            given = [places.get(i, x) for i, x in enumerate(ins)]
            return [y for y in entry.fn(*given) if is_floating(y)]

        ys, dxs = mx.vjp(run, [ins[i] for i in at], dys)
        return [*ys, *dxs]

    parts: list[dict[str, Any]] = []
    try:
        mx.export_function(parts.append, both, *entry.ins, *outs)
    except ValueError:  # there is something that MLX can't write down
        return _sizes([*entry.ins, *outs])
    graph = _Graph(parts)
    arrays = dict(zip(graph.inputs, entry.ins, strict=False))
    arrays |= dict(zip(graph.outputs, outs, strict=False))
    return [
        (id(arrays[name]), arrays[name].nbytes)
        if name in arrays
        else ((id(entry.outs[0]), name), graph.sizes[name])
        for name in graph.read(graph.inputs[:n], graph.outputs[: len(outs)])
    ]


class _Graph:
    """What MLX tells of a function when it exports it."""

    def __init__(self, parts: list[dict[str, Any]]) -> None:
        self.sizes: dict[str, int] = {}
        self.made: dict[str, tuple[str, list[str]]] = {}  # by what, and of what
        self.constants: set[str] = set()
        for part in parts:
            kind = part["type"]
            if kind in ("inputs", "outputs"):
                setattr(self, kind, self._names(part[kind]))
            elif kind == "constants":
                self.constants = {name for name, _ in part[kind]}
            elif kind == "primitive":
                ins = self._names(part["inputs"])
                for name in self._names(part["outputs"]):
                    self.made[name] = part["name"], ins

    inputs: list[str]
    outputs: list[str]

    def _names(self, described: Any) -> list[str]:
        for name, shape, dtype in described:
            self.sizes[name] = prod(shape) * dtype.size
        return [name for name, *_ in described]

    def read(self, xs: list[str], ys: list[str]) -> list[str]:
        """What is there after the forward pass, and read to compute the rest."""
        forward = {*xs, *self._before(ys)}
        rest = self._before([y for y in self.outputs if y not in ys])
        read = [y for y in self.outputs[len(ys) :] if y in forward]
        for name in rest:
            if name not in forward and name in self.made:
                read += [x for x in self.made[name][1] if x in forward]
        return [*dict.fromkeys(x for x in map(self._source, read) if x in forward)]

    def _source(self, name: str) -> str | None:
        """Whose memory a value is in; None for a constant."""
        while name in self.made and self.made[name][0] in _VIEWS:
            name = self.made[name][1][0]
        return None if name in self.constants else name

    def _before(self, names: list[str]) -> list[str]:
        """What leads to values, and these."""
        found: dict[str, None] = {}
        todo = [*names]
        while todo:
            name = todo.pop()
            if name not in found:
                found[name] = None
                todo += self.made[name][1] if name in self.made else []
        return [*found]
