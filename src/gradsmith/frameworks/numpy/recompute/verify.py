"""Is the gradient of a checkpointed function that of the function? On the engine.

Both are computed, with the same upstream, and must agree to the last bit: the same
operations run on the same numbers. If they don't, two plain runs are compared operation
by operation, which gives the place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ....core import trees
from ....core.places import Place, place_here
from ....core.tape import Traced, only, state, walk_back
from ....core.tensor import unwrap
from ..._randomness import Streams
from ..._recompute import require_same
from .block import Block, SourceTape, checkpointed, nodes_of, seeds_of


def require_equal(
    block: Block, name: str, streams: Streams, names: dict[int, str]
) -> None:
    """Raise if the recomputed block differs from the plain one."""
    outer = state().recorders
    is_source = lambda x: any(r.mark_of(x) is not None for r in outer)

    def first() -> str:
        logs = []
        for _ in range(2):
            tape = _LoggingTape(is_source)
            with streams.unchanged(), only((tape,)):
                block()
            logs.append(tape.log)
        return _first_difference(*logs)

    found = []
    for each in (block, lambda: checkpointed(block, name, streams)):
        with streams.unchanged():
            found.append(_values_and_gradients(each, SourceTape(is_source), names))
    plain, recomputed = found
    require_same(name, plain, recomputed, exact=True, first=first)


def _values_and_gradients(
    block: Block, tape: SourceTape, names: dict[int, str]
) -> dict[str, Any]:
    """All that is to be compared, by what it is called."""
    with only((tape,)):
        result = block()
    named = [*trees.leaves_with_names(result, "the value")]
    found = {each: unwrap(y) for each, y in named}
    random = np.random.default_rng(0)
    nodes = nodes_of(tape, [y for _, y in named])
    dys = [
        None if node is None else random.standard_normal(y.shape).astype(y.dtype)
        for node, (_, y) in zip(nodes, named, strict=True)
    ]
    seeds = seeds_of(nodes, dys)
    leaves = list(tape.leaves.values())
    with np.errstate(all="ignore"):
        pulled = walk_back(seeds, [node for _, node in leaves], keep=False, prune=False)
    for i, (x, node) in enumerate(leaves):
        of = names.get(id(x)) or getattr(x, "name", "") or f"captured tensor {i}"
        found[f"the gradient for {of}"] = unwrap(pulled[node])
    return found


class _Entry(NamedTuple):
    operation: str
    place: Place | None
    values: tuple[bytes, ...]


class _LoggingTape(SourceTape):
    def __init__(self, is_source: Any) -> None:
        super().__init__(is_source)
        self.records_one = False
        self.log: list[_Entry] = []

    def record(self, rule: Any, inputs: Any, call: Any, kept: Any, y: Any) -> None:
        super().record(rule, inputs, call, kept, y)
        arrays = [*inputs, y] if isinstance(y, Traced) else [*inputs, *y]
        values = tuple(np.asarray(unwrap(x)).tobytes() for x in arrays)
        self.log.append(_Entry(rule.name, place_here(), values))


def _first_difference(one: list[_Entry], other: list[_Entry]) -> str:
    """The first operation whose numbers differ, with its line."""
    for a, b in zip(one, other, strict=False):
        if a.operation != b.operation or a.values != b.values:
            line = f" at {a.place}\n      {a.place.source}" if a.place else ""
            return f"{a.operation}{line}"
    if len(one) != len(other):
        return f"one run has {len(one)} operations, the next {len(other)}"
    return ""
