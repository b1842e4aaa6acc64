"""Is the gradient of a checkpointed function that of the function? On the engine.

Both are computed, with the same upstream, and must agree to the last bit: the same
operations run on the same numbers. If they don't, two plain runs are compared operation
by operation, which gives the place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...core import trees
from ...core.places import Place, place_here
from ...core.tape import Node, Tape, Traced, only, state, walk_back
from ...core.tensor import unwrap
from .compare import difference, disagreement
from .engine import Run, checkpointed
from .randomness import Streams


def require_equal(run: Run, name: str, streams: Streams, names: dict[int, str]) -> None:
    """Raise if what is run again differs from what was run."""
    start = streams.read()
    outer = state.recorders
    found = []
    for each in (run, lambda: checkpointed(run, name, streams)):
        streams.write(start)
        found.append(_values_and_gradients(each, outer, names))
    trouble = _trouble(*found)
    if trouble:
        logs = []
        for _ in range(2):
            streams.write(start)
            logs.append(_log(run, outer))
        streams.write(start)
        raise disagreement(name, *trouble, _first_difference(*logs))
    streams.write(start)


class _Following(Tape):
    """Follows what one of the given recorders follows."""

    def __init__(self, outer: Sequence[Any]) -> None:
        super().__init__(lifts=False, watch_variables=False)
        self.records_one = False
        self.outer = outer

    def mark_of(self, x: Traced, *, reading: bool = True) -> Node | None:
        mark = super().mark_of(x)
        if mark is None and any(r.mark_of(x) is not None for r in self.outer):
            return self.follow(x)
        return mark


def _values_and_gradients(
    run: Run, outer: Sequence[Any], names: dict[int, str]
) -> dict[str, Any]:
    """All that is to be compared, by what it is called."""
    tape = _Following(outer)
    with only((tape,)):
        result = run()
    named = [*trees.leaves_with_names(result, "the value")]
    found = {each: unwrap(y) for each, y in named}
    random, seeds = np.random.default_rng(0), {}
    for _, y in named:
        node = tape.mark_of(y) if isinstance(y, Traced) else None
        if node is not None:
            dy = random.standard_normal(y.shape).astype(y.dtype)
            seeds[node] = seeds[node] + dy if node in seeds else dy
    leaves = list(tape.leaves.values())
    with np.errstate(all="ignore"):
        pulled = walk_back(seeds, [node for _, node in leaves], keep=False, prune=False)
    for i, (x, node) in enumerate(leaves):
        of = names.get(id(x)) or getattr(x, "name", "") or f"captured tensor {i}"
        found[f"the gradient for {of}"] = unwrap(pulled[node])
    return found


def _trouble(plain: dict[str, Any], again: dict[str, Any]) -> tuple[str, str] | None:
    for what in dict.fromkeys((*plain, *again)):
        if what not in plain or what not in again:
            run = "plain" if what in plain else "checkpointed"
            return what, f"is there in the {run} run alone"
        words = difference(plain[what], again[what], exact=True)
        if words:
            return what, words
    return None


class _Entry(NamedTuple):
    operation: str
    place: Place | None
    values: tuple[bytes, ...]


class _Logging(_Following):
    def __init__(self, outer: Sequence[Any]) -> None:
        super().__init__(outer)
        self.log: list[_Entry] = []

    def record(self, rule: Any, inputs: Any, call: Any, kept: Any, y: Any) -> None:
        super().record(rule, inputs, call, kept, y)
        arrays = [*inputs, y] if isinstance(y, Traced) else [*inputs, *y]
        values = tuple(np.asarray(unwrap(x)).tobytes() for x in arrays)
        self.log.append(_Entry(rule.name, place_here(), values))


def _log(run: Callable[[], Any], outer: Sequence[Any]) -> list[_Entry]:
    tape = _Logging(outer)
    with only((tape,)):
        run()
    return tape.log


def _first_difference(one: list[_Entry], other: list[_Entry]) -> str:
    """The first operation whose numbers differ, with its line."""
    for a, b in zip(one, other, strict=False):
        if a.operation != b.operation or a.values != b.values:
            line = f" at {a.place}\n      {a.place.source}" if a.place else ""
            return f"{a.operation}{line}"
    if len(one) != len(other):
        return f"one run has {len(one)} operations, the next {len(other)}"
    return ""
