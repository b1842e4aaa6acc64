"""gs.checkpoint on the embedded engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core import trees
from ...core.tape import Traced, only, state
from .engine import Again, checkpointed
from .engine_scan import Scan, Scanned
from .flat import name_of
from .plan import Plan
from .randomness import Streams
from .spotter import Spotter


def checkpoint(
    fn: Callable[..., Any], args: Any, kwargs: Any, *, verify: bool = False
) -> Any:
    def run() -> Any:
        return fn(*args, **kwargs)

    if not state.recorders:
        return run()
    name = name_of(fn)
    streams = Streams(fn, args, kwargs)
    if verify:
        from .verify import require_equal

        require_equal(run, name, streams, _names(args, kwargs))
    return checkpointed(run, name, streams)


def _names(args: Any, kwargs: Any) -> dict[int, str]:
    """How messages call the arrays of a call."""
    named = [(f"argument {i}", x) for i, x in enumerate(args)]
    named += [(f"argument {key}", x) for key, x in kwargs.items()]
    return {
        id(leaf): name
        for root, x in named
        for name, leaf in trees.leaves_with_names(x, root)
    }


def scan(plan: Plan) -> list[Any]:
    """The leaves of the last state; recorders keep what the schedule stores."""
    if not state.recorders:
        return plan.plainly(plan.start)
    streams = Streams(plan.step, plan.start)
    nested = lambda: _nested(plan, streams)
    if state.sole is None:  # higher orders: each block is differentiated in turn
        return nested()
    outer, spotter = state.recorders, Spotter(state.recorders)
    for x in plan.start:
        if isinstance(x, Traced):
            spotter.mark_of(x)
    run = Scan(plan.take, plan.start, plan.actions(), streams, plan.folder)
    before = streams.read()
    with only((spotter,)):
        last = run.sweep(spotter.mark_of)
    flat = last.values
    last.values = []
    if not spotter.found:
        return flat
    numbers = [i for i, node in enumerate(last.ends) if node is not None]
    ys = [flat[i] for i in numbers]
    if ys:
        inputs, replay = list(spotter.found.values()), streams.drawn_since(before)
        again = Again(nested, inputs, numbers, ys, replay, plan.name)
        for recorder in outer:
            recorder.record(Scanned(plan.name, run), inputs, again, None, ys)
    return flat


def _nested(plan: Plan, streams: Streams) -> list[Any]:
    """The same steps as a nest of checkpointed blocks."""

    def block(leaves: list[Any], inner: Any) -> list[Any]:
        return checkpointed(lambda: inner(leaves), plan.name, streams)

    return plan.in_blocks(block)


def unstacked(x: Any) -> Any:
    return np.unstack(x)
