"""A long loop of steps and its gradient on the embedded engine, by a schedule.

To the tape it is one operation. The forward sweep stores states as the schedule says
and records the last step alone; the pullback takes the steps in reverse, each recorded
by itself at a state that is loaded, or recomputed from the one before.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from ....core.errors import GradsmithError
from ....core.tape import Node, Traced, only, state, walk_back
from ....core.tensor import readonly, wrap
from ..._randomness import Replay, Streams
from ..._recompute import Action, ScanPlan
from .block import (
    InputFinder,
    RecomputeRule,
    Rerun,
    SourceTape,
    checkpointed,
    nodes_of,
    seeds_of,
)

Take = Callable[[list[Any], int], list[Any]]  # a step on the leaves of a state


def scan(plan: ScanPlan) -> list[Any]:
    """The leaves of the last state; recorders keep what the schedule stores."""
    if not state().recorders:
        return plan.in_turn()
    streams = Streams(plan.step, plan.start)
    nested = lambda: _nested(plan, streams)
    if state().sole is None:  # higher orders: each block is differentiated in turn
        return nested()
    outer, finder = state().recorders, InputFinder(state().recorders)
    for x in plan.start:
        if isinstance(x, Traced):
            finder.mark_of(x)
    sweep = Sweep(plan.take, plan.start, plan.actions(), streams, plan.folder)
    with only((finder,)):
        last, replay = sweep.forward(finder.mark_of)
    flat = last.values
    last.values = []
    if not finder.found:
        return flat
    numbers = [i for i, node in enumerate(last.ends) if node is not None]
    ys = [flat[i] for i in numbers]
    if ys:
        inputs = list(finder.found.values())
        rerun = Rerun(nested, inputs, numbers, ys, replay, plan.name)
        for recorder in outer:
            recorder.record(ScanRule(plan.name, sweep), inputs, rerun, None, ys)
    return flat


def _nested(plan: ScanPlan, streams: Streams) -> list[Any]:
    """The same steps as a nest of checkpointed blocks."""

    def block(leaves: list[Any], inner: Any) -> list[Any]:
        return checkpointed(lambda: inner(leaves), plan.name, streams)

    return plan.in_blocks(block)


class StepTape(SourceTape):
    """Follows a state, and of all else what it is told is a source."""

    def __init__(self, leaves: Sequence[Any], is_source: Any) -> None:
        super().__init__(is_source)
        self.nodes = [
            self.follow(x) if isinstance(x, Traced) and x.dtype.kind in "fcO" else None
            for x in leaves
        ]
        self.given = set(self.leaves)

    def captured(self) -> list[tuple[Traced, Node]]:
        return [leaf for key, leaf in self.leaves.items() if key not in self.given]


class RecordedStep:
    """One step that was recorded: its tape, and the nodes of what it returned."""

    def __init__(
        self, take: Take, leaves: list[Any], i: int, is_source: Any, *, keep: bool
    ) -> None:
        self.tape = StepTape(leaves, is_source)
        with only((self.tape,)):
            ys = take(leaves, i)
        self.ends = nodes_of(self.tape, ys)
        self.values = [stripped(y) for y in ys] if keep else []

    def pulled(self, dys: list[Any]) -> tuple[list[Any], list[tuple[Traced, Any]]]:
        """The cotangents of the state, and of what the step captured."""
        seeds = seeds_of(self.ends, dys)
        dys.clear()  # the walk gives up each of them as it goes
        captured = self.tape.captured()
        nodes = [node for node in self.tape.nodes if node is not None]
        sources = [*nodes, *(node for _, node in captured)]
        found = walk_back(seeds, sources, keep=False, prune=False)
        dxs = [None if node is None else found[node] for node in self.tape.nodes]
        return dxs, [(x, found[node]) for x, node in captured]


class Sweep:
    """The forward sweep and the reverse one, and what is stored at the moment."""

    def __init__(
        self,
        take: Take,
        start: list[Any],
        schedule: Sequence[Action],
        streams: Streams,
        folder: str | None,
    ) -> None:
        self.take = take
        self.start = start
        self.schedule = schedule
        self.streams = streams
        self.folder = folder
        self.is_random = False  # then states of generators belong to the snapshots
        self._reset()

    def _reset(self) -> None:
        self.snapshots = Snapshots(self.folder)
        self.rest = iter(self.schedule)
        self.recorded: RecordedStep | None = None

    def forward(self, is_source: Any) -> tuple[RecordedStep, Replay | None]:
        """All steps, of which the last is recorded; and how to draw the same again."""
        with self.streams.unchanged():
            before = self.streams.begin()
            self._advance(is_source, keep=True)
            replay = self.streams.drawn_since(before)
        if replay is not None:  # now in earnest
            self.is_random = True
            self._reset()
            before = self.streams.begin()
            self._advance(is_source, keep=True)
            replay = self.streams.drawn_since(before)
            if replay is not None and len(replay.starts) > 1:
                raise GradsmithError(_TOGETHER)
            replay = replay and replay.in_parts()
        assert self.recorded is not None
        return self.recorded, replay

    def _advance(self, is_source: Any, *, keep: bool = False) -> None:
        """Go on by the schedule until a step is recorded."""
        leaves, random = self.start, None
        for action in self.rest:
            if action.kind == "load":
                leaves, random = self.snapshots.load(action.start, last=action.last)
                if self.is_random:
                    self.streams.write(random)
                continue
            if action.store:
                random = self.streams.read() if self.is_random else None
                self.snapshots.store(action.start, leaves, random, action.store)
            if action.kind == "record":
                leaves = [stripped(x) for x in leaves]
                self.recorded = RecordedStep(
                    self.take, leaves, action.start, is_source, keep=keep
                )
                return
            for i in range(action.start, action.stop):
                leaves = self.take(leaves, i)

    def reverse(
        self, dys: list[Any], inputs: Sequence[Traced]
    ) -> tuple[list[Any], list[Any]]:
        """The cotangents of the start, and those of the inputs that steps captured."""
        sources = {id(x) for x in inputs}
        is_source = lambda x: id(x) in sources
        if self.recorded is None:  # it was walked before: all anew
            self._reset()
            self._advance(is_source)
        total: dict[int, Any] = {}
        while self.recorded is not None:
            recorded, self.recorded = self.recorded, None
            dys, captured = recorded.pulled(dys)
            del recorded
            for x, dx in captured:
                if dx is not None:
                    total[id(x)] = total[id(x)] + dx if id(x) in total else dx
            del captured
            self._advance(is_source)
        return dys, [total.get(id(x)) for x in inputs]


class ScanRule(RecomputeRule):
    """The rule of a scan; if it is differentiated again, that of its nest of blocks."""

    __slots__ = ("sweep",)

    def __init__(self, name: str, sweep: Sweep) -> None:
        super().__init__(name)
        self.sweep = sweep

    def pullback(self, tracked: Sequence[int], rerun: Rerun, y: Any) -> Any:
        general = super().pullback(tracked, rerun, y)

        def pull(dy: Any, needs: Any) -> list[Any]:
            if state().recorders:
                return general(dy, needs)
            numbers = {number: i for i, number in enumerate(rerun.numbers)}
            flat = range(len(self.sweep.start))
            dys = [dy.pop(numbers[j], None) if j in numbers else None for j in flat]
            with rerun.rewound():
                dstart, totals = self.sweep.reverse(dys, rerun.inputs)
            for x, dx in zip(self.sweep.start, dstart, strict=True):
                for i, given in enumerate(rerun.inputs):
                    if given is x and dx is not None:
                        totals[i] = dx if totals[i] is None else totals[i] + dx
            return [totals[i] for i in tracked]

        return pull


class Snapshots:
    """States by the number of the step that they are before.

    With each go the states of random generators, if anything is drawn. Arrays in memory
    are not copied: nobody changes them.
    """

    def __init__(self, folder: str | None) -> None:
        self.folder = folder
        self.stored: dict[int, Any] = {}
        self._made: str | None = None

    def store(self, n: int, leaves: list[Any], random: Any, place: str) -> None:
        held = leaves if place == "ram" else self._write(n, leaves)
        self.stored[n] = (held, random)

    def load(self, n: int, *, last: bool) -> tuple[list[Any], Any]:
        held, random = self.stored.pop(n) if last else self.stored[n]
        leaves = held if isinstance(held, list) else held.read(remove=last)
        return [stripped(x) for x in leaves], random

    def _write(self, n: int, leaves: list[Any]) -> _File:
        if self._made is None:
            self._made = tempfile.mkdtemp(prefix="gradsmith-", dir=self.folder)
            weakref.finalize(self, shutil.rmtree, self._made, ignore_errors=True)
        return _File(os.path.join(self._made, f"{n}.npz"), leaves)


class _File:
    """A state on disk."""

    def __init__(self, path: str, leaves: list[Any]) -> None:
        self.path = path
        self.traced = [isinstance(x, Traced) for x in leaves]
        arrays = [x.value if isinstance(x, Traced) else x for x in leaves]
        self.sums = [_checksum(x) for x in arrays]
        try:
            with open(path, "wb") as file:
                for x in arrays:
                    np.lib.format.write_array(file, np.asarray(x), allow_pickle=False)
        except OSError as error:
            error.add_note(
                "while checkpoint_scan stored a state on disk: free some space, choose "
                "another folder=..., or fewer disk=... snapshots"
            )
            raise

    def read(self, *, remove: bool) -> list[Any]:
        try:
            with open(self.path, "rb") as file:
                arrays = [np.lib.format.read_array(file) for _ in self.traced]
        except (ValueError, EOFError) as error:  # not even an array
            raise GradsmithError(_CHANGED.format(self.path)) from error
        if [_checksum(x) for x in arrays] != self.sums:
            raise GradsmithError(_CHANGED.format(self.path))
        if remove:
            os.remove(self.path)
        pairs = zip(arrays, self.traced, strict=True)
        return [wrap(x) if traced else x for x, traced in pairs]


_TOGETHER = (
    "the steps of checkpoint_scan draw from np.random, and so did another thread at "
    "the same time: what they drew can't be drawn again. Give the steps a generator of "
    "their own, np.random.default_rng(...)."
)
_CHANGED = (
    "a state that checkpoint_scan stored on disk, {}, is not as it was written: the "
    "disk or another program has changed it. Choose another folder=..., or disk=0."
)


def _checksum(x: Any) -> int:
    return crc32(np.ascontiguousarray(x).data)


def stripped(x: Any) -> Any:
    """A value as a step is given it: followed by nobody, and not to be changed."""
    return wrap(x.value) if isinstance(x, Traced) else readonly(x)
