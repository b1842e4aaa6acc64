"""The derivative of the steps that were made, of which a few states are stored.

The steps are chosen for values alone, and then made: how long they are is a constant,
as parts of the interval.
"""

from __future__ import annotations

from typing import Any

import gradsmith.numpy as gnp

from ...operations.portable import stop_gradient
from ...tools.checkpoint import checkpoint, checkpoint_scan
from ...tools.checkpoint.schedule import repetitions
from .ode import Flow
from .parts import compiled_of

_REPETITIONS = 2  # how often a step is recomputed by default


def stepped(
    y: Any, t0: Any, t1: Any, params: Any, flow: Flow, *, snapshots: Any, apart: bool
) -> Any:
    """y at t1, from that at t0, by steps that are differentiated themselves.

    If it is to be kept apart, nothing but y is stored until a gradient is asked for.
    """
    steps = _Steps(y, t0, t1, params, flow)
    n = len(steps.parts)
    stored = _enough(n) if snapshots is None else snapshots

    def run(*state: Any) -> Any:
        return checkpoint_scan(steps, list(state), n, snapshots=stored)[0]

    # What a state carries along unchanged is stored once, and differentiated where
    # captured arrays are not.
    return (checkpoint(run) if apart else run)(y, t0, t1 - t0, *params)


class _Steps:
    """The steps of an interval: a state is y, t0, the interval's length and params."""

    def __init__(self, y: Any, t0: Any, t1: Any, params: Any, flow: Flow) -> None:
        self.flow = flow
        with compiled_of(y).unrecorded():
            # A NumPy array may come out of a tracer
            still = [
                gnp.asarray(stop_gradient(x), like=x) for x in (y, t0, t1, *params)
            ]
            f = lambda t, y: flow.f(t, y, still[3:])
            self.parts = flow.solver.parts(f, *still[:3])

    def __call__(self, state: Any, i: int) -> Any:
        y, t0, span, *params = state
        begin, part = self.parts[i]
        f = lambda t, y: self.flow.f(t, y, params)
        y = self.flow.solver.step(f, t0 + begin * span, y, part * span)
        return [y, t0, span, *params]


def _enough(steps: int) -> int:
    """The least number of snapshots with which no step is made more than thrice."""
    snapshots = 1
    while repetitions(steps, snapshots) > _REPETITIONS:
        snapshots += 1
    return snapshots
