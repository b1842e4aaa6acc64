"""One call of a function that is recomputed, on TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import tensorflow as tf

from ....core.reach import reached
from ..._captured import with_captured
from ..._randomness import Replay, Streams
from ..._recompute import FlatCall
from ..call.captured import Uses
from ..call.specs import is_floating
from ..call.walk import captured_by, reads_of
from ..private import (
    SymbolicTensor,
    VariableWatcher,
    autograph_context,
    autographed,
    default_graph,
    executing_eagerly,
    stop_recording,
)
from .replay import Log, logged, replayed
from .state import Losses


class Block:
    """What a call was given and captured, and how to rerun it.

    The inputs are its arrays, the tensors that it captured, and the variables it read.
    """

    def __init__(self, flat: FlatCall, name: str, streams: Streams) -> None:
        self.flat = flat
        self.name = name
        self.streams = streams
        self.replay: Replay | None = None
        self.losses = Losses(flat.fn, flat.arguments)
        self.context = autograph_context()
        self.log = Log()
        self.captured: list[Any] = []
        self.variables: list[Any] = []
        self.floating: list[int] = []  # which results have gradients

    def run(self) -> list[Any]:
        """The first run, of which nothing is kept."""
        xs = self.flat.arrays
        self.log = Log()
        uses = Uses(xs)
        start = None if executing_eagerly() else default_graph().version + 1
        before = self.streams.begin()
        with (
            VariableWatcher() as watcher,
            uses if start is None else nullcontext(),
            stop_recording(),
            logged(self.log),
        ):
            ys = self.called(self.flat.fn, xs)
        self.replay = self.streams.drawn_since(before)
        self.variables = list(watcher.watched_variables())
        if start is None:
            self.captured = uses.followed()
        else:
            is_read = reads_of(self.variables)
            local = [y for y in ys if isinstance(y, SymbolicTensor)]
            found = captured_by(local, xs, start)
            graph = default_graph()
            found += [x for x in _tensors_in(self.flat.fn) if x.graph is graph]
            found = list({id(x): x for x in found if not is_read(x)}.values())
            self.captured = [x for x in found if x.dtype != tf.resource]
        self.floating = [i for i, y in enumerate(ys) if is_floating(y)]
        return ys

    def called(self, fn: Any, xs: Sequence[Any]) -> list[Any]:
        """The arrays of the result, and the losses that layers added."""
        run = self.losses.returned_with(autographed(fn, self.context))
        return self.flat.of(run, xs)

    def restored(self, ys: list[Any], old: list[Any]) -> Any:
        """The result with these arrays, which have gradients, in place of old ones."""
        self.losses.replace(old, ys)
        return self.flat.restored(ys)[0]

    @property
    def inputs(self) -> list[Any]:
        values = [tf.convert_to_tensor(variable) for variable in self.variables]
        return [*self.flat.arrays, *self.captured, *values]

    def _rerun(self, xs: Sequence[Any], captured: Any, values: Any) -> list[Any]:
        """Rerun it in this graph: what it captured may be of another."""
        fn, by_handle = self.flat.fn, {}
        if not executing_eagerly():
            here = dict(zip(map(id, self.captured), captured, strict=True))
            fn = with_captured(fn, lambda x: here.get(id(x), x))
            handles = [variable.handle for variable in self.variables]
            by_handle = dict(zip(map(id, handles), values, strict=True))
        replay = self.replay or nullcontext
        with replayed(self.log, by_handle), replay(), self.losses.unchanged():
            ys = self.called(fn, xs)
        return [ys[i] for i in self.floating]

    def gradients(self, inputs: Sequence[Any], dys: list[Any]) -> Any:
        # In a graph, what does not wait for the upstream may run, and be kept, early.
        wait = nullcontext() if executing_eagerly() else tf.control_dependencies(dys)
        with wait:
            n, m = len(self.flat.arrays), len(self.captured)
            xs = [tf.identity(x) for x in inputs[:n]]
            captured, values = list(inputs[n : n + m]), list(inputs[n + m :])
            if executing_eagerly():  # they are there by themselves
                captured, values = self.captured, self.variables
            sources = [*xs, *captured, *values]
            with tf.GradientTape(watch_accessed_variables=False) as tape:
                for x in sources:
                    if is_floating(x):
                        tape.watch(x)
                ys = self._rerun(xs, captured, values)
            found = tape.gradient(ys, sources, dys)
        return tuple(None if dx is None else tf.convert_to_tensor(dx) for dx in found)


def _tensors_in(fn: Any) -> list[Any]:
    return list(reached(fn, stop=lambda x: isinstance(x, SymbolicTensor)))
