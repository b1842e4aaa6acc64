"""Operations that run as kernels on plain NumPy arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from math import prod
from typing import Any
from weakref import ref

import numpy as np

from ....core import pool
from ....core.arrays import QUICK
from ....core.cotangent import Spec, cast
from ....core.tape import Traced, record_pull, state
from ....core.tensor import Tensor, Variable, readonly, wrap
from ....operations.application import run_body as run_composed
from ....operations.engine_rule import EngineRule
from ....operations.fusing import is_on, runs_on_cpu
from ....operations.parameters import Bound

_STATIC = {int, float, bool, str, type(None)}
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


def quick(operation: Any, args: tuple[Any, ...]) -> Any:
    """Run an operation under the only tape, by its kernels, or NotImplemented.

    What kernels compute is new and as the plan says: nothing is checked or copied. Call
    and gradient take 20 us where all that may be else takes 50.
    """
    tape = state().sole
    if operation.fused is None or tape is None or not is_on() or not runs_on_cpu():
        return NotImplemented
    key: list[Any] = []
    leaves, parents, wanted, size = [], [], [], 0
    for x in args:
        cls, node = x.__class__, None
        if cls in _STATIC:
            key.append((cls, repr(x) if cls is float and x == 0 else x))
            continue
        if isinstance(x, Traced):
            node = tape.mark_of(x)
            x = x.value
        if x.__class__ is not np.ndarray or x.dtype not in _DTYPES:
            return NotImplemented
        if node is not None and x.dtype.kind == "f":
            wanted.append(len(leaves))
            parents.append(node)
        key.append((x.dtype, x.shape, node is None))
        leaves.append(x)
        size = max(size, x.size)
    if not parents:
        return NotImplemented
    try:
        plan = operation.fused.plan(
            tuple(key), lambda: (_described(operation, args, leaves), wanted), size
        )
    except TypeError:  # the general way says what is wrong
        return NotImplemented
    if plan is None:
        return NotImplemented
    xs, value, saved = _forward(plan, leaves)
    y = wrap(value if plan.same is None else readonly(value))
    pull, rule = _Pull(plan, xs, value, saved), EngineRule(operation, len(xs), ())
    record_pull(tape, rule, parents[0] if len(parents) == 1 else parents, pull, y)
    if value.nbytes >= pool.SMALLEST and plan.over_y is not None:
        pull.node = ref(tape.mark_of(y))
    return y


def _described(operation: Any, args: tuple[Any, ...], leaves: list[Any]) -> Bound:
    """The call with specs for its arrays, if it has no more of them."""
    bound = operation.signature.bind(args, {})
    if bound.places is None or len(bound.places) != len(leaves):
        raise TypeError
    return bound.with_leaves([Spec(x.shape, x.dtype) for x in leaves])


class _Pull:
    """The gradient of a call, with what its kernel reads.

    A large value is memory for the gradient, if nobody else sees it: the gradient of
    sqrt of 2**20 float32 then takes 46 us, else 69. That takes a `node`.
    """

    __slots__ = ("given", "node", "plan")

    def __init__(self, plan: Any, xs: list[Any], y: Any, saved: list[Any]) -> None:
        of = {"dy": [None], "x": xs, "y": [y], "saved": saved}
        self.plan = plan
        self.given = [of[name][i] for name, i in plan.sources]
        self.node: Callable[[], Any] | None = None

    def __call__(self, dy: Any, needs: Any = None) -> Any:
        dxs = _pulled(self.plan, self.given, dy, self._used_up())
        return dxs if len(dxs) > 1 else dxs[0]

    def _used_up(self) -> Any:
        """The value, if this walk is the last and nobody else sees it; else None."""
        node = self.node and self.node()
        if node is None or node.pull is not None:  # a walk takes it that keeps nothing
            return None
        place = self.plan.sources.index(("y", 0))
        y = self.given.pop(place)
        is_free = pool.is_held_once(y)
        self.given.insert(place, y)
        return y if is_free else None


def _run(plan: Any, leaves: Sequence[Any]) -> tuple[Any, Any]:
    xs, y, saved = _forward(plan, leaves)
    if not plan.wanted:
        return y, None
    return y, _gradient(plan, xs, y if plan.needs_y else None, saved)


def _forward(plan: Any, leaves: Sequence[Any]) -> tuple[list[Any], Any, list[Any]]:
    """The arguments as kernels take them, the value, and what is saved."""
    xs = [np.ascontiguousarray(x) for x in leaves]
    if plan.same is not None:
        return xs, leaves[plan.same], []
    y = _empty((plan.parts or plan.y).shape, np.dtype(plan.written_dtype))
    saved = [np.empty(s.shape, s.dtype) for s in plan.saved]
    if plan.forward.size:
        outputs = [y.ctypes.data, *[s.ctypes.data for s in saved]]
        plan.forward.run([x.ctypes.data for x in xs], outputs, _threads())
    return xs, y if plan.parts is None else np.asarray(y.sum(), plan.y_dtype), saved


def _gradient(plan: Any, xs: list[Any], y: Any, saved: list[Any]) -> Any:
    wanted, n = plan.wanted, len(xs)
    needed = {i for name, i in plan.sources if name == "x"}
    held = [x if i in needed else None for i, x in enumerate(xs)]

    def grad(dy: Any) -> Any:  # captures y itself, which else would be copied
        of = {"dy": [None], "x": held, "y": [y], "saved": saved}
        given = [of[name][i] for name, i in plan.sources]
        found = dict(zip(wanted, _pulled(plan, given, dy), strict=True))
        return found[0] if n == 1 else tuple(found.get(i) for i in range(n))

    return grad


def _pulled(plan: Any, given: Sequence[Any], dy: Any, over: Any = None) -> list[Any]:
    """A gradient for each argument that is wanted; `given` has a gap for dy.

    One is written `over` the value, if that is given.
    """
    if plan.passes_on:
        return [dy] * len(plan.wanted)
    if isinstance(dy, Traced):
        return _composed(plan, [dy if x is None else x for x in given])
    k = None if over is None else plan.over_y
    dxs: list[Any] = [
        over if i == k else _empty(*made) for i, made in enumerate(plan.made)
    ]
    repeats = dy.size > 1 and not any(dy.strides)
    kernel = plan.backward("scalar" if repeats else "full")
    if kernel.size:
        dy = dy if repeats else np.ascontiguousarray(dy)
        addresses = [(dy if x is None else x).ctypes.data for x in given]
        kernel.run(addresses, [dx.ctypes.data for dx in dxs], _threads())
    return dxs


def _composed(plan: Any, given: list[Any]) -> list[Any]:
    """The same by the steps of the gradient, for who differentiates by dy."""
    program = plan.gradient
    pairs = zip(program.inputs, given, strict=True)
    dxs = program(*[cast(x, v.dtype) for v, x in pairs])
    return [cast(dx, dtype) for dx, (_, dtype) in zip(dxs, plan.made, strict=True)]


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


QUICK[Tensor] = QUICK[Variable] = quick
