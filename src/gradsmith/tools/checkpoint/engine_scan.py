"""A long loop of steps and its gradient on the embedded engine, by a schedule.

To the tape it is one operation. The forward sweep stores states as the schedule says
and records the last step alone; the pullback takes the steps in reverse, each recorded
by itself at a state that is loaded, or computed again from the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core.tape import Node, Tape, Traced, only, state, walk_back
from .engine import Again, Recomputed
from .randomness import Streams
from .schedule import Action
from .snapshots import Snapshots, stripped

Take = Callable[[list[Any], int], list[Any]]  # a step on the leaves of a state


class StepTape(Tape):
    """Follows a state, and of all else what it is told is a source."""

    def __init__(self, leaves: Sequence[Any], is_source: Any) -> None:
        super().__init__(lifts=False, watch_variables=False)
        self.is_source = is_source
        self.nodes = [
            self.follow(x) if isinstance(x, Traced) and x.dtype.kind in "fcO" else None
            for x in leaves
        ]
        self.own = set(self.leaves)

    def mark_of(self, x: Traced, *, reading: bool = True) -> Node | None:
        mark = super().mark_of(x)
        if mark is None and self.is_source(x):
            return self.follow(x)
        return mark

    def captured(self) -> list[tuple[Traced, Node]]:
        return [leaf for key, leaf in self.leaves.items() if key not in self.own]


class Recorded:
    """One step that was recorded: its tape, and the nodes of what it returned."""

    def __init__(
        self, take: Take, leaves: list[Any], i: int, is_source: Any, *, keep: bool
    ) -> None:
        self.tape = StepTape(leaves, is_source)
        with only((self.tape,)):
            ys = take(leaves, i)
        self.ends = [
            self.tape.mark_of(y, reading=False) if isinstance(y, Traced) else None
            for y in ys
        ]
        self.values = [stripped(y) for y in ys] if keep else []

    def pulled(self, dys: list[Any]) -> tuple[list[Any], list[tuple[Traced, Any]]]:
        """The cotangents of the state, and of what the step captured."""
        seeds: dict[Any, Any] = {}
        for node, dy in zip(self.ends, dys, strict=True):
            if node is not None and dy is not None:
                seeds[node] = seeds[node] + dy if node in seeds else dy
        dys.clear()  # the walk gives up each of them as it goes
        captured = self.tape.captured()
        nodes = [node for node in self.tape.nodes if node is not None]
        sources = [*nodes, *(node for _, node in captured)]
        found = walk_back(seeds, sources, keep=False, prune=False)
        dxs = [None if node is None else found[node] for node in self.tape.nodes]
        return dxs, [(x, found[node]) for x, node in captured]


class Scan:
    """The steps, where they start, and what is stored of them at the moment."""

    def __init__(
        self,
        take: Take,
        start: list[Any],
        plan: Sequence[Action],
        streams: Streams,
        folder: str | None,
    ) -> None:
        self.take = take
        self.start = start
        self.plan = plan
        self.streams = streams
        self.folder = folder
        self.is_random = False  # then states of generators belong to the snapshots
        self._reset()

    def _reset(self) -> None:
        self.snapshots = Snapshots(self.folder)
        self.rest = iter(self.plan)
        self.recorded: Recorded | None = None

    def sweep(self, is_source: Any) -> Recorded:
        """All steps, of which the last is recorded."""
        before = self.streams.read()
        self._forward(is_source, keep=True)
        if self.streams.drawn_since(before) is not None:
            self.is_random = True
            self.streams.write(before)
            self._reset()
            self._forward(is_source, keep=True)
        assert self.recorded is not None
        return self.recorded

    def _forward(self, is_source: Any, *, keep: bool = False) -> None:
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
                self.recorded = Recorded(
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
            self._forward(is_source)
        total: dict[int, Any] = {}
        while self.recorded is not None:
            recorded, self.recorded = self.recorded, None
            dys, captured = recorded.pulled(dys)
            del recorded
            for x, dx in captured:
                if dx is not None:
                    total[id(x)] = total[id(x)] + dx if id(x) in total else dx
            del captured
            self._forward(is_source)
        return dys, [total.get(id(x)) for x in inputs]


class Scanned(Recomputed):
    """The rule of a scan; if it is differentiated again, that of its nest of blocks."""

    __slots__ = ("scan",)

    def __init__(self, name: str, scan: Scan) -> None:
        super().__init__(name)
        self.scan = scan

    def pullback(self, tracked: Sequence[int], again: Again, y: Any) -> Any:
        general = super().pullback(tracked, again, y)

        def pull(dy: Any, needs: Any) -> list[Any]:
            if state.recorders:
                return general(dy, needs)
            numbers = {number: i for i, number in enumerate(again.numbers)}
            flat = range(len(self.scan.start))
            dys = [dy.pop(numbers[j], None) if j in numbers else None for j in flat]
            with again.as_it_was():
                dstart, totals = self.scan.reverse(dys, again.inputs)
            for x, dx in zip(self.scan.start, dstart, strict=True):
                for i, given in enumerate(again.inputs):
                    if given is x and dx is not None:
                        totals[i] = dx if totals[i] is None else totals[i] + dx
            return [totals[i] for i in tracked]

        return pull
