"""Forward and gradient of every operation, compiled, beside the frameworks' own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks._measure import Progress, interleaved
from benchmarks._peers import PEERS, load
from benchmarks._report import Options, Report, Row
from benchmarks.ops.cases import STABLE, Case
from benchmarks.ops.edges import add_edges
from benchmarks.ops.gradient_cases import GRADIENTS
from benchmarks.ops.loss_cases import LOSSES
from benchmarks.ops.native import FRAMEWORKS, Framework
from gradsmith.core.errors import first_line

CASES = [*STABLE, *LOSSES, *GRADIENTS]
SHAPE, QUICK_SHAPE = (128, 1024), (4, 8)
COMPILED = 1.05


def run(options: Options) -> Report:
    with one_core():
        return _run(options)


def _run(options: Options) -> Report:
    report, progress = Report("ops", options), Progress("ops")
    chosen = options.selection or {}
    there = ["numpy", *report.available("tensorflow", "jax", "torch")]
    for framework in FRAMEWORKS:
        if framework.name not in there:
            continue
        if chosen.get("framework", framework.name) != framework.name:
            continue
        _load(framework)
        for case in CASES:
            if chosen.get("operation", case.name) != case.name:
                continue
            progress(f"{case.name} in {title(framework)}")
            try:
                with np.errstate(all="ignore"):  # plain formulas make NumPy warn
                    measure(case, framework, report, progress)
            except Exception as error:
                what = f"{case.name} in {title(framework)}: {first_line(error)}"
                report.refused.append(what)
        add_edges(framework, report, chosen.get("operation"))
    return report


def _load(framework: Framework) -> None:
    if framework.name != "numpy":
        load(framework.name)


@contextmanager
def one_core() -> Iterator[None]:
    """Frameworks make as many threads as there are cores for them.

    With one, nobody waits for a thread that the machine gave to somebody else.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def title(framework: Framework) -> str:
    if framework.name == "numpy":
        return "the engine"
    return f"{PEERS[framework.name].title}, {framework.compiler}"


def measure(
    case: Case,
    framework: Framework,
    report: Report,
    progress: Progress,
    target: float = COMPILED,
) -> None:
    if case.plain is None and framework.name not in case.own:
        return
    shape = QUICK_SHAPE if report.options.quick else SHAPE
    xs = [framework.array(x) for x in arguments(case.inputs, shape)]
    n = len(xs) if case.floats is None else case.floats
    who, theirs = case.theirs(framework)
    dy = _upstream(framework, case.ours, n, xs)
    calls = {}
    for name, fn in (("ours", case.ours), ("theirs", theirs)):
        compiled = framework.compiled(fn, n)
        calls[name] = lambda run=compiled: framework.done(run(dy, *xs))
    _compare(case, framework, [call() for call in calls.values()])
    rounds, turn = (1, 0.001) if report.options.quick else (15, 0.02)
    seconds = interleaved(calls, progress, rounds=rounds, turn=turn)
    report.rows.append(
        Row(
            case=f"{case.name}, {title(framework)}",
            ours=seconds["ours"] * 1e6,
            peer=seconds["theirs"] * 1e6,
            peer_name=who,
            target=None if framework.name == "numpy" else target,
            unit="us",
        )
    )


def arguments(inputs: str, shape: tuple[int, int]) -> list[Any]:
    """x any, p positive, q shares, b zeros and ones, l classes: by a letter each."""
    rng = np.random.default_rng(0)
    made = []
    for letter in inputs:
        x = rng.normal(size=shape).astype(np.float32)
        if letter == "p":
            x = np.abs(x) + np.float32(0.1)
        elif letter == "q":
            x = np.abs(x) / np.abs(x).sum(-1, keepdims=True)
        elif letter == "b":
            x = (x > 0).astype(np.float32)
        elif letter == "l":
            x = rng.integers(0, shape[1], shape[0])
        made.append(x)
    return made


def _upstream(framework: Framework, fn: Any, n: int, xs: Any) -> Any:
    """An upstream gradient that no compiler knows."""
    shape = tuple(fn(*xs).shape)
    dy = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    return framework.array(dy)


def _compare(case: Case, framework: Framework, results: Any) -> None:
    """A wrong gradient is easily fast. Random ones differ, as does a constant."""
    if case.plain is None:
        return
    ours, theirs = results
    start = 1 if case.name == "gaussian_nll" else 0
    for a, b in list(zip(ours, theirs, strict=True))[start:]:
        a, b = framework.plain(a), framework.plain(b)
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5, err_msg=case.name)
