"""Recomputing instead of storing, on the embedded engine.

A checkpointed block is one operation to the recorders: its inputs are the followed
values that it reads, given or captured, and what it saves is how to rerun it. The block
is rerun under a tape when its gradient is asked for, and under an accumulator for its
tangents. If that is itself recorded, it is a checkpointed block in turn: hence any
order of derivative is right, and keeps little alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from ....core import trees
from ....core.cotangent import Spec, spec_of
from ....core.errors import GradsmithError
from ....core.forward import ForwardAccumulator
from ....core.tape import Node, Tape, Traced, leave_mark, only, state, walk_back
from ....core.tensor import Variable, wrap
from ..._randomness import Replay, Streams
from ..._recompute import require_visible

Block = Callable[[], Any]


def checkpointed(block: Block, name: str, streams: Streams | None = None) -> Any:
    """The result of `block()`, of which recorders keep how to rerun it, no more."""
    outer = state().recorders
    if all(isinstance(recorder, ForwardAccumulator) for recorder in outer):
        return block()  # forward mode keeps nothing
    finder = InputFinder(outer)
    before = streams.begin() if streams else None
    with only((finder,)):
        result = block()
    numbers: list[int] = []
    ys: list[Traced] = []
    flat = trees.leaves(result)
    is_followed = lambda y: isinstance(y, Traced) and finder.mark_of(y) is not None
    require_visible(flat, is_followed, name, block)
    for i, y in enumerate(flat):
        if isinstance(y, Traced) and y.dtype.kind in "fcO" and finder.mark_of(y):
            numbers.append(i)
            ys.append(wrap(y.value))
            flat[i] = ys[-1]
    if ys:
        replay = streams.drawn_since(before) if streams and before else None
        rerun = Rerun(block, list(finder.found.values()), numbers, ys, replay, name)
        rule = RecomputeRule(name)
        for recorder in outer:
            recorder.record(rule, rerun.inputs, rerun, None, ys)
    return trees.unflatten(result, flat)


_INSIDE = Node(None, (), None)  # the mark of all that depends on something followed


class InputFinder(Tape):
    """Stands in for the recorders while a block runs, and saves nothing of it.

    `found` are the values from outside that one of them follows, by their ids: the
    arguments of the block, and what it captures.
    """

    def __init__(self, outer: Sequence[Any]) -> None:
        super().__init__(lifts=False, watch_variables=False)
        self.records_one = False
        self.outer = outer
        self.found: dict[int, Traced] = {}

    def mark_of(self, x: Traced, *, reading: bool = True) -> Node | None:
        marks = x.marks
        if (marks is not None and self.key in marks) or id(x) in self.found:
            return _INSIDE
        # Each of them is asked: a tape follows a variable from its first reading on.
        marks_outside = [recorder.mark_of(x) for recorder in self.outer]
        if any(mark is not None for mark in marks_outside):
            self.found[id(x)] = x
            return _INSIDE
        return None

    def record(
        self, rule: Any, inputs: Sequence[Any], call: Any, kept: Any, y: Any
    ) -> None:
        followed = [isinstance(x, Traced) and self.mark_of(x) for x in inputs]
        if any(followed):
            for output in (y,) if isinstance(y, Traced) else y:
                if output.dtype.kind in "fcO":
                    leave_mark(output, self.key, _INSIDE)

    def lost(self, xs: Sequence[Traced], where: str, why: str) -> None:
        """Tell the recorders as if the values that the block was given were lost."""
        if any(self.mark_of(x) for x in xs):
            for recorder in self.outer:
                recorder.lost(list(self.found.values()), where, why)


class Rerun:
    """How to rerun a block as it ran, with its variables as they were."""

    __slots__ = ("block", "inputs", "name", "numbers", "replay", "specs", "variables")

    def __init__(
        self,
        block: Block,
        inputs: list[Traced],
        numbers: list[int],
        ys: Sequence[Traced],
        replay: Replay | None,
        name: str,
    ) -> None:
        self.block = block
        self.inputs = inputs
        self.numbers = numbers
        self.specs = [spec_of(y) for y in ys]
        self.variables = [(x, x.value) for x in inputs if isinstance(x, Variable)]
        self.replay = replay
        self.name = name

    def __call__(self) -> list[Any]:
        """Those of the results that have a gradient."""
        with self.rewound():
            flat = trees.leaves(self.block())
        if len(flat) > max(self.numbers):
            ys = [flat[i] for i in self.numbers]
            if all(map(Spec.describes, self.specs, ys)):
                return ys
        raise GradsmithError(
            f"{self.name!r} returned other shapes or dtypes when it was run again\n"
            f"  expected: {self.specs}\n"
            f"  got: {[spec_of(y) for y in flat]}\n"
            "  what to do: let it depend only on its arguments and what it captures"
        )

    @contextmanager
    def rewound(self) -> Iterator[None]:
        """Variables may have been assigned since, and random numbers drawn."""
        now = [x.value for x, _ in self.variables]
        try:
            for x, value in self.variables:
                x.value = value
            with (self.replay or nullcontext)():
                yield
        finally:
            for (x, _), value in zip(self.variables, now, strict=True):
                x.value = value


class RecomputeRule:
    """The rule of a block: its gradients and tangents are those of a rerun."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def pullback(self, tracked: Sequence[int], rerun: Rerun, y: Any) -> Any:
        def pull(dy: Any, needs: Any) -> list[Any]:
            wanted = tracked
            if needs is not None:
                wanted = [i for i, need in zip(tracked, needs, strict=True) if need]
            dys = [dy.pop(i, None) for i in range(len(rerun.numbers))]
            found = _maybe_recorded(lambda: _gradients(rerun, wanted, dys), self.name)
            gradient = dict(zip(wanted, found, strict=True))
            return [gradient.get(i) for i in tracked]

        return pull

    def push(self, tangents: Sequence[Any], rerun: Rerun, y: Any) -> list[Any]:
        return _maybe_recorded(lambda: _tangents(rerun, tangents), self.name)


def _maybe_recorded(block: Block, name: str) -> Any:
    """A rerun may be differentiated too: it keeps as little alive."""
    return checkpointed(block, name) if state().recorders else block()


def _gradients(rerun: Rerun, wanted: Sequence[int], dys: Sequence[Any]) -> list[Any]:
    """The gradients of the wanted inputs, None where there is none."""
    tape = Tape(lifts=False, watch_variables=False)
    nodes = [tape.follow(rerun.inputs[i]) for i in wanted]
    with only((*state().recorders, tape)):
        ys = rerun()
    seeds = seeds_of(nodes_of(tape, ys), dys)
    del ys  # the walk needs what the rules saved, and nothing else
    found = walk_back(seeds, nodes, keep=False, prune=False)
    return [found[node] for node in nodes]


class SourceTape(Tape):
    """Follows each value that `is_source` says yes to, from its first reading on."""

    def __init__(self, is_source: Callable[[Traced], Any]) -> None:
        super().__init__(lifts=False, watch_variables=False)
        self.is_source = is_source

    def mark_of(self, x: Traced, *, reading: bool = True) -> Node | None:
        mark = super().mark_of(x)
        return self.follow(x) if mark is None and self.is_source(x) else mark


def nodes_of(tape: Tape, ys: Sequence[Any]) -> list[Node | None]:
    """The nodes of results, None for those that don't depend on what is followed."""
    return [
        tape.mark_of(y, reading=False) if isinstance(y, Traced) else None for y in ys
    ]


def seeds_of(nodes: Sequence[Node | None], dys: Sequence[Any]) -> dict[Any, Any]:
    """Where the walk back starts: one node may be that of several results."""
    seeds: dict[Any, Any] = {}
    for node, dy in zip(nodes, dys, strict=True):
        if node is not None and dy is not None:
            seeds[node] = seeds[node] + dy if node in seeds else dy
    return seeds


def _tangents(rerun: Rerun, tangents: Sequence[Any]) -> list[Any]:
    given = [i for i, dx in enumerate(tangents) if dx is not None]
    xs, dxs = [rerun.inputs[i] for i in given], [tangents[i] for i in given]
    with ForwardAccumulator(xs, dxs) as accumulator:
        ys = rerun()
    return [accumulator.mark_of(y) if isinstance(y, Traced) else None for y in ys]
