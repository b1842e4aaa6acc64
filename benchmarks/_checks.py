"""What is measured of `gs.check`, in a process of its own for each framework."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp
from benchmarks._peers import load
from gradsmith.core.arrays import FRAMEWORKS
from gradsmith.tools._inputs import info_of

# --- operations ----------------------------------------------------------------------


def elementwise(wrong: int | None = None) -> Any:
    """x sin(x); at one element the gradient is half of it, if asked for."""

    @gs.operation
    def times_sine(x: Any) -> Any:
        return x * gnp.sin(x)

    @times_sine.vjp
    def rule(dy: Any, y: Any, x: Any) -> Any:
        dx = dy * (gnp.sin(x) + x * gnp.cos(x))
        if wrong is None or wrong >= int(np.prod(x.shape)):
            return dx
        here = np.zeros(x.shape, bool)
        here.flat[wrong] = True
        return gnp.where(gnp.asarray(here, like=dx), 0.5 * dx, dx)

    return times_sine


def softmax() -> Any:
    @gs.operation
    def softmax(x: Any) -> Any:
        e = gnp.exp(x - gnp.max(x, axis=-1, keepdims=True))
        return e / gnp.sum(e, axis=-1, keepdims=True)

    @softmax.vjp
    def rule(dy: Any, y: Any, x: Any) -> Any:
        return y * (dy - gnp.sum(y * dy, axis=-1, keepdims=True))

    return softmax


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape)


# --- seconds and bytes ----------------------------------------------------------------


def small(framework: str, rounds: int) -> dict[str, float]:
    """Seconds of the first check and of the best of others, for each operation."""
    _import(framework)
    found = {}
    for name, op in (("elementwise", elementwise()), ("softmax", softmax())):
        times = [_seconds(lambda op=op: _right(op, normal(3, 4), framework))]
        times += [
            _seconds(lambda op=op: _right(op, normal(3, 4), framework))
            for _ in range(rounds)
        ]
        found[f"{name}, first"] = times[0]
        found[f"{name}, again"] = min(times[1:])
    return found


def large(framework: str, size: int, rounds: int) -> dict[str, float]:
    """Seconds of a right gradient and of one with a single wrong element, and memory.

    Memory is that of the first check of this size.
    """
    small(framework, 1)
    x, place = normal(size), size * 2 // 3
    before = _peak()
    _right(elementwise(), x, framework)
    memory = (_peak() - before) / x.nbytes
    right = [
        _seconds(lambda: _right(elementwise(), x, framework)) for _ in range(rounds)
    ]
    wrong = [
        _seconds(lambda: _located(elementwise(place), x, framework, place))
        for _ in range(rounds)
    ]
    return {"memory": memory, "right": min(right), "wrong": min(wrong)}


def _import(framework: str) -> None:
    """All that is imported at first use, which is not what is measured."""
    if framework != "numpy":
        load(framework)
    gs.check  # noqa: B018
    FRAMEWORKS[framework].part("calculus")
    info_of(elementwise(), framework)


def _seconds(call: Callable[[], None]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def _right(op: Any, x: np.ndarray, framework: str) -> None:
    report = gs.check.options(framework=framework)(op, x)
    if not report.ok:  # a wrong verdict is easily fast
        raise AssertionError(f"a right gradient was not accepted: {report}")


def _located(op: Any, x: np.ndarray, framework: str, place: int) -> None:
    report = gs.check.options(framework=framework)(op, x)
    if [f.elements for f in report.findings] != [f"element [{place}]"]:
        raise AssertionError(f"element {place} was not located: {report}")


def _peak() -> int:
    """The most bytes that this process had so far."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage tells is that of the parent too
        line = next(s for s in status.open() if s.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024
