"""Recomputing instead of storing, on the embedded engine.

A checkpointed block is one operation to the recorders: its inputs are the followed
values that it reads, given or captured, and what it saves is how to run it again. The
block is run again under a tape when its gradient is asked for, and under an accumulator
for its tangents. If that is itself recorded, it is a checkpointed block in turn: hence
any order of derivative is right, and keeps little alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from ...core import trees
from ...core.cotangent import Spec, spec_of
from ...core.errors import GradsmithError
from ...core.forward import ForwardAccumulator
from ...core.tape import Tape, Traced, only, state, walk_back
from ...core.tensor import Variable, wrap
from .hidden import require_open
from .randomness import Replay, Streams
from .spotter import Spotter

Run = Callable[[], Any]


def checkpointed(run: Run, name: str, streams: Streams | None = None) -> Any:
    """The result of `run()`, of which recorders keep how to run it again, no more."""
    outer = state.recorders
    if all(isinstance(recorder, ForwardAccumulator) for recorder in outer):
        return run()  # forward mode keeps nothing
    spotter = Spotter(outer)
    before = streams.read() if streams else []
    with only((spotter,)):
        result = run()
    numbers: list[int] = []
    ys: list[Traced] = []
    flat = trees.leaves(result)
    is_followed = lambda y: isinstance(y, Traced) and spotter.mark_of(y) is not None
    require_open(flat, is_followed, name, run)
    for i, y in enumerate(flat):
        if isinstance(y, Traced) and y.dtype.kind in "fcO" and spotter.mark_of(y):
            numbers.append(i)
            ys.append(wrap(y.value))
            flat[i] = ys[-1]
    if ys:
        replay = streams.drawn_since(before) if streams else None
        again = Again(run, list(spotter.found.values()), numbers, ys, replay, name)
        rule = Recomputed(name)
        for recorder in outer:
            recorder.record(rule, again.inputs, again, None, ys)
    return trees.unflatten(result, flat)


class Again:
    """How to run a block again as it ran, with its variables as they were."""

    __slots__ = ("inputs", "name", "numbers", "replay", "run", "specs", "variables")

    def __init__(
        self,
        run: Run,
        inputs: list[Traced],
        numbers: list[int],
        ys: Sequence[Traced],
        replay: Replay | None,
        name: str,
    ) -> None:
        self.run = run
        self.inputs = inputs
        self.numbers = numbers
        self.specs = [spec_of(y) for y in ys]
        self.variables = [(x, x.value) for x in inputs if isinstance(x, Variable)]
        self.replay = replay
        self.name = name

    def __call__(self) -> list[Any]:
        """Those of the results that have a gradient."""
        with self.as_it_was():
            flat = trees.leaves(self.run())
        if len(flat) > max(self.numbers):
            ys = [flat[i] for i in self.numbers]
            if all(map(Spec.describes, self.specs, ys)):
                return ys
        raise GradsmithError(
            f"{self.name!r} returned other shapes or dtypes when it was run again\n"
            f"  expected: {self.specs}\n"
            f"  got: {[spec_of(y) for y in flat]}\n"
            "  what to do: let it depend on its arguments and on what it captures alone"
        )

    @contextmanager
    def as_it_was(self) -> Iterator[None]:
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


class Recomputed:
    """The rule of a block: its gradients and tangents are those of running it again."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def pullback(self, tracked: Sequence[int], again: Again, y: Any) -> Any:
        def pull(dy: Any, needs: Any) -> list[Any]:
            wanted = tracked
            if needs is not None:
                wanted = [i for i, need in zip(tracked, needs, strict=True) if need]
            dys = [dy.pop(i, None) for i in range(len(again.numbers))]
            found = _maybe_recorded(lambda: gradients(again, wanted, dys), self.name)
            gradient = dict(zip(wanted, found, strict=True))
            return [gradient.get(i) for i in tracked]

        return pull

    def push(self, tangents: Sequence[Any], again: Again, y: Any) -> list[Any]:
        return _maybe_recorded(lambda: _tangents(again, tangents), self.name)


def _maybe_recorded(run: Run, name: str) -> Any:
    """What is run again may be differentiated too: it keeps as little alive."""
    return checkpointed(run, name) if state.recorders else run()


def gradients(again: Again, wanted: Sequence[int], dys: Sequence[Any]) -> list[Any]:
    """The gradients of the wanted inputs, None where there is none."""
    tape = Tape(lifts=False, watch_variables=False)
    nodes = [tape.follow(again.inputs[i]) for i in wanted]
    with only((*state.recorders, tape)):
        ys = again()
    seeds: dict[Any, Any] = {}
    for y, dy in zip(ys, dys, strict=True):
        node = tape.mark_of(y, reading=False) if isinstance(y, Traced) else None
        if node is not None and dy is not None:
            seeds[node] = seeds[node] + dy if node in seeds else dy
    del ys, y  # the walk needs what the rules saved, and nothing else
    found = walk_back(seeds, nodes, keep=False, prune=False)
    return [found[node] for node in nodes]


def _tangents(again: Again, tangents: Sequence[Any]) -> list[Any]:
    given = [i for i, dx in enumerate(tangents) if dx is not None]
    xs, dxs = [again.inputs[i] for i in given], [tangents[i] for i in given]
    with ForwardAccumulator(xs, dxs) as accumulator:
        ys = again()
    return [accumulator.mark_of(y) if isinstance(y, Traced) else None for y in ys]
