"""Is the gradient right, and what does it cost beside plain autodiff?"""

from __future__ import annotations

import tracemalloc
from time import perf_counter

import numpy as np

import gradsmith as gs

from .design import Design
from .solver import IteratedFluid


def error(design, velocity, step=1e-3, seed=0):
    """The gradient along a random direction, against differences of order four."""
    way = np.random.default_rng(seed).normal(size=velocity.shape)
    way *= step / np.abs(way).max()

    def at(k):
        return float(design.loss(velocity + k * way))

    differences = (8 * (at(1) - at(-1)) - (at(2) - at(-2))) / 12
    gradient = np.sum(gs.grad(design.loss)(velocity) * way)
    return abs(gradient - differences) / abs(differences)


def costs(velocity, steps):
    """Seconds and peak memory of a gradient: with the adjoint solve, and plain."""
    ours = Design(steps=steps)
    plain = Design(steps=steps, fluid=IteratedFluid)
    return {
        "adjoint solve, 20 snapshots": _cost(ours.loss, velocity),
        "adjoint solve, all states": _cost(ours.loss, velocity, snapshots=None),
        "autodiff of the iterations": _cost(plain.loss, velocity, snapshots=None),
    }


def _cost(loss, velocity, **how):
    gradient = gs.grad(lambda velocity: loss(velocity, **how))
    started = perf_counter()
    dv = gradient(velocity)
    seconds = perf_counter() - started
    tracemalloc.start()
    gradient(velocity)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return seconds, peak / 1e6, dv
