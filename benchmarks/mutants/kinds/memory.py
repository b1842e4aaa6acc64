"""Rules that write where they may only read, or that misread how an array lies."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradsmith.numpy as gnp

from ..kind import Kind, each
from ..operation import Operation, Rule

# The other frameworks' arrays can't be written to (the engine's are read-only in a
# rule), and TensorFlow's and JAX' show no layout.
WRITABLE = ("torch",)
WITH_LAYOUT = ("numpy", "torch")


def overwrite(x: Any) -> None:
    """Half of each element, in place, as a rule does that saves a temporary."""
    if isinstance(x, np.ndarray):
        x *= 0.5
    else:
        x.data.mul_(0.5)


def writes_upstream(op: Operation) -> Rule:
    def rule(dy: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        dxs = _copied(op.rule(dy, y, *xs))
        each(overwrite, dy)
        return dxs

    return rule


def writes_input(op: Operation) -> Rule:
    first = op.floats[0]

    def rule(dy: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        dxs = _copied(op.rule(dy, y, *xs))
        overwrite(xs[first])
        return dxs

    return rule


def _copied(dxs: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(None if dx is None else 1 * dx for dx in dxs)


def contiguous_only(op: Operation) -> Rule | None:
    """Reads the elements in the order in which they lie in memory."""
    if all(len(op.args[i].shape) < 2 for i in op.floats):
        return None

    def rule(dy: Any, y: Any, *xs: Any) -> tuple[Any, ...]:
        return op.rule(each(in_memory_order, dy), y, *map(in_memory_order, xs))

    return rule


def in_memory_order(x: Any) -> Any:
    if gnp.ndim(x) < 2:
        return x
    order = np.argsort([-abs(s) for s in strides_of(x)], kind="stable")
    return gnp.reshape(gnp.transpose(x, tuple(map(int, order))), gnp.shape(x))


def strides_of(x: Any) -> tuple[int, ...]:
    if hasattr(x, "data_ptr"):
        return x.stride()
    return x.strides if isinstance(x, np.ndarray) else x.numpy().strides


KINDS = (
    Kind("writes to the upstream", writes_upstream, frameworks=WRITABLE),
    Kind("writes to an input", writes_input, frameworks=WRITABLE),
    Kind(
        "right only if contiguous",
        contiguous_only,
        frameworks=WITH_LAYOUT,
        layout="F",
    ),
)
