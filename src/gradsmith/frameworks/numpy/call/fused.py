"""Operations that run as kernels on plain NumPy arrays."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from ....core import pool
from ....core.tape import Traced
from ....operations.application import run_body as run_composed
from ....operations.fusing import is_on, runs_on_cpu
from ....operations.parameters import Bound

_DTYPES = {np.dtype(name) for name in ("?", "i1", "i2", "i4", "i8", "f2", "f4", "f8")}


def run_body(operation: Any, bound: Bound, originals: Sequence[Any]) -> tuple[Any, Any]:
    """Run an operation's body, by its kernel if there is one: outputs and gradient.

    `originals` are the arrays as they came: those that are followed have gradients.
    """
    if operation.fused is not None:
        found = _by_kernel(operation, bound, originals)
        if found is not None:
            return found
    return run_composed(operation, bound)


def _by_kernel(operation: Any, bound: Bound, originals: Sequence[Any]) -> Any:
    if not is_on() or not runs_on_cpu():
        return None
    wanted = []
    for k, x in enumerate(bound.leaves):
        if x.__class__ is not np.ndarray or x.dtype not in _DTYPES:
            return None
        if originals and isinstance(originals[k], Traced) and x.dtype.kind == "f":
            wanted.append(k)
    plan = operation.fused.plan_of(bound, wanted)
    if plan is None:
        return None
    return _run(plan, bound.leaves)


def _run(plan: Any, leaves: Sequence[Any]) -> tuple[Any, Any]:
    xs = [np.ascontiguousarray(x) for x in leaves]
    if plan.same is None:
        y, saved = _value(plan, xs)
    else:
        y, saved = leaves[plan.same], []
    if not plan.wanted:
        return y, None
    return y, _gradient(plan, xs, y if plan.needs_y else None, saved)


def _value(plan: Any, xs: list[Any]) -> tuple[Any, list[Any]]:
    y = _empty((plan.parts or plan.y).shape, np.dtype(plan.written_dtype))
    saved = [np.empty(s.shape, s.dtype) for s in plan.saved]
    if plan.forward.size:
        outputs = [y.ctypes.data, *[s.ctypes.data for s in saved]]
        plan.forward.run([x.ctypes.data for x in xs], outputs, _threads())
    return y if plan.parts is None else np.asarray(y.sum(), plan.y_dtype), saved


def _gradient(plan: Any, xs: list[Any], y: Any, saved: list[Any]) -> Any:
    wanted = plan.wanted
    needed = {i for name, i in plan.sources if name == "x"}
    specs = [(x.shape, x.dtype) for x in xs]
    held = [x if i in needed else None for i, x in enumerate(xs)]

    def grad(dy: Any) -> Any:  # captures y itself, which else would be copied
        dxs: list[Any] = [None] * len(specs)
        for i in wanted:
            dxs[i] = dy if plan.passes_on else _empty(*specs[i])
        repeats = dy.size > 1 and not any(dy.strides)
        kernel = plan.backward("scalar" if repeats else "full")
        if kernel.size and not plan.passes_on:
            dy = dy if repeats else np.ascontiguousarray(dy)
            of = {"dy": [dy], "x": held, "y": [y], "saved": saved}
            given = [of[name][i].ctypes.data for name, i in plan.sources]
            kernel.run(given, [dxs[i].ctypes.data for i in wanted], _threads())
        return dxs[0] if len(dxs) == 1 else tuple(dxs)

    return grad


def _empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """A new array; a large one in memory that was used before: half the time."""
    nbytes = prod(shape) * dtype.itemsize
    if nbytes < pool.SMALLEST:
        return np.empty(shape, dtype)
    return pool.empty(shape, dtype, nbytes)


@cache
def _threads() -> int:
    """As many as OpenMP would take."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    if given.isdigit() and int(given):
        return int(given)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
