"""Operations that run as kernels on eager tensors, without a copy.

The kernel reads the tensors' own memory, and writes arrays that then become tensors.
What forward accumulators follow is composed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import tensorflow as tf

from ....core.pool import aligned
from ....operations.fusing import is_on, runs_on_cpu
from ....operations.parameters import Bound
from ..private import (
    alias,
    could_record,
    has_tangents,
    memory_of,
    orders_of,
    runs_on_host,
    tensor_of,
)
from .specs import TensorSpec

_DTYPES = {
    name: np.dtype(tf.as_dtype(name).as_numpy_dtype)
    for name in (
        "float16", "bfloat16", "float32", "float64", "bool", "int8", "int16", "int32",
        "int64",
    )
}  # fmt: skip
_KNOWN = {*_DTYPES.values()}
# Elements. TensorFlow's operations take longer to start than others': composed, even
# one number takes ten times as long. Plans are not made for what is called once.
SMALLEST = 1 << 6


def plan_of(
    operation: Any, bound: Bound, xs: Sequence[Any], wanted: Sequence[int], once: bool
) -> Any:
    """The plan of a call, or None if it is not for a kernel.

    If its gradient is asked for once at most, it may be made ahead.
    """
    if not is_on() or not runs_on_cpu() or not runs_on_host(xs):
        return None
    if wanted and has_tangents(xs):
        return None
    specs = [TensorSpec(x) for x in xs]
    if not all(spec.dtype in _KNOWN for spec in specs):
        return None
    described = bound.with_leaves(specs)
    return operation.fused.plan_of(described, wanted, ahead=once, smallest=SMALLEST)


def run_forward(plan: Any, xs: Sequence[Any]) -> tuple[Any, list[np.ndarray]]:
    """The value, and what is saved for the gradient: at last gradients made ahead."""
    if plan.same is not None:
        return alias(xs[plan.same]), []
    y = aligned((plan.parts or plan.y).shape, _DTYPES[plan.written_dtype])
    saved = [np.empty(s.shape, s.dtype) for s in plan.saved[: plan.small]]
    saved += [aligned(s.shape, s.dtype) for s in plan.saved[plan.small :]]
    _run(plan.forward, [memory_of(x) for x in xs], [y, *saved])
    if plan.parts is not None:
        parts, y = y, aligned((), _DTYPES[plan.y_dtype])
        y[...] = parts.sum()
    return tensor_of(y), saved


class FusedGradient:
    """The gradient of one call."""

    __slots__ = ("plan", "saved", "xs", "y")

    def __init__(self, plan: Any, xs: Sequence[Any], y: Any, saved: Any) -> None:
        self.plan, self.xs, self.y, self.saved = plan, xs, y, saved

    def __call__(self, dy: Any) -> list[Any] | None:
        """A gradient for each tensor; None if it is not for a kernel.

        One that was made ahead is given away.
        """
        plan, xs, saved = self.plan, self.xs, self.saved
        if saved is None or not runs_on_host([dy]):
            return None
        if could_record() and orders_of([dy, *xs]):
            return None
        if plan.passes_on:
            return [dy if i in plan.wanted else None for i in range(len(xs))]
        of = {"dy": [dy], "x": xs, "y": [self.y]}
        given = [
            saved[i] if name == "saved" else memory_of(of[name][i])
            for name, i in plan.sources
        ]
        if plan.ahead:
            dxs, self.saved = saved[plan.small :], None
        else:
            specs = [TensorSpec(xs[i]) for i in plan.wanted]
            dxs = [aligned(spec.shape, spec.dtype) for spec in specs]
        _run(plan.backward(), given, dxs)
        found: list[Any] = [None] * len(xs)
        for i, dx in zip(plan.wanted, dxs, strict=True):
            found[i] = tensor_of(dx)
        return found


def _run(kernel: Any, given: list[np.ndarray], written: list[np.ndarray]) -> None:
    """The arrays are held here as long as it runs."""
    if kernel.size:
        inputs, outputs = map(_addresses, (given, written))
        if kernel.is_small:
            kernel.run_small(inputs + outputs)
        else:
            kernel.run(inputs, outputs, _threads())


def _addresses(arrays: list[np.ndarray]) -> list[int]:
    return [x.__array_interface__["data"][0] for x in arrays]


@cache
def _threads() -> int:
    """As many as TensorFlow uses for one operation."""
    given = tf.config.threading.get_intra_op_parallelism_threads()
    if not given and hasattr(os, "sched_getaffinity"):
        given = len(os.sched_getaffinity(0))
    return given or os.cpu_count() or 1
