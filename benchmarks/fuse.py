"""Fused kernels on the CPU: eager PyTorch and TensorFlow, the engine, JAX, a first one.

Forward and gradient, ours beside the framework's own. The copy is the floor: as many
bytes as the value and the gradient of one argument have to move, and nothing computed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks._measure import Progress, interleaved
from benchmarks._peers import load
from benchmarks._report import Options, Report, Row
from benchmarks.ops.benchmark import CASES, arguments, measure, one_core
from benchmarks.ops.cases import Case
from benchmarks.ops.native import Framework, Jax, TensorFlow

LARGE, SMALL = (1024, 1024), (10, 100)
TARGETS = {LARGE: 1.0, SMALL: 1.3}
ENGINE, LOSS, JIT = 0.5, 0.55, 0.6
IN_JIT = ("softmax", "log_softmax", "logsumexp", "cross_entropy")  # reductions
FIRST, AGAIN = 2.0, 0.1  # seconds
COPY = "a copy"


def run(options: Options) -> Report:
    report, progress = Report("fuse", options), Progress("fuse")
    chosen = (options.selection or {}).get("operation")
    with one_core():
        if "torch" in report.available("torch"):
            load("torch").set_num_threads(1)
            for shape in (SMALL,) if options.quick else (LARGE, SMALL):
                for case in CASES:
                    if "torch" in case.own and chosen in (None, case.name):
                        progress(case.name)
                        _in_torch(case, shape, report, progress)
        if "tensorflow" in report.available("tensorflow"):
            for case in CASES:
                if "tensorflow" in case.own and chosen in (None, case.name):
                    progress(case.name)
                    _in_tensorflow(case, report, progress)
        for case in CASES:
            if case.plain is not None and chosen in (None, case.name):
                _in_engine(case, report, progress)
        if "jax" in report.available("jax"):
            for case in CASES:
                if case.name in IN_JIT and chosen in (None, case.name):
                    measure(case, Jax("jax", "jit"), report, progress, JIT)
    if chosen in (None, "cross_entropy") and "torch" in report.available("torch"):
        _loss(report, progress)
    if chosen is None:
        _first(report)
    return report


def _in_torch(case: Case, shape: Any, report: Report, progress: Progress) -> None:
    torch = load("torch")
    xs = [torch.tensor(x) for x in arguments(case.inputs, shape)]
    n = len(xs) if case.floats is None else case.floats
    leaves = [x.requires_grad_() for x in xs[:n]]
    own = case.own["torch"]
    dy = torch.ones_like(case.ours(*xs))

    def both(fn: Callable[..., Any]) -> Any:
        return torch.autograd.grad(fn(*xs), leaves, dy, allow_unused=True)

    from_, to = torch.ones(shape), torch.empty(shape)
    calls = {
        "ours": lambda: both(case.ours),
        "own": lambda: both(lambda *xs: own(torch, *xs)),
        COPY: lambda: (to.copy_(from_), to.copy_(from_)),
    }
    try:
        calls["own"]()
    except RuntimeError as error:
        report.notes.append(f"{case.name} in PyTorch: its own raises {error}")
        return
    _time(
        f"{case.name}, PyTorch, {_size(shape)}", calls, TARGETS[shape], report, progress
    )


def _in_tensorflow(case: Case, report: Report, progress: Progress) -> None:
    eager, shape = TensorFlow("tensorflow"), SMALL if report.options.quick else LARGE
    xs = [eager.array(x) for x in arguments(case.inputs, shape)]
    n = len(xs) if case.floats is None else case.floats
    dy = load("tensorflow").ones_like(case.ours(*xs))
    peer, theirs = case.theirs(eager)
    ours, own = eager.pull(case.ours, n), eager.pull(theirs, n)
    calls = {"ours": lambda: ours(dy, *xs), peer: lambda: own(dy, *xs)}
    name = f"{case.name}, TensorFlow, {_size(shape)}"
    _time(name, calls, None, report, progress)


def _in_engine(case: Case, report: Report, progress: Progress) -> None:
    import gradsmith as gs

    shape = SMALL if report.options.quick else LARGE
    xs = arguments(case.inputs, shape)
    n = len(xs) if case.floats is None else case.floats
    # Where the gradient is no derivative, the same rule in plain NumPy: the derivative
    # of rounding is 0, and takes no time.
    who, theirs = case.theirs(Framework())
    fns = {"ours": case.ours, who: theirs}

    def both(fn: Callable[..., Any]) -> Callable[[], Any]:
        gradient = gs.grad(lambda *xs: np.sum(fn(*xs)), argnums=tuple(range(n)))
        return lambda: gradient(*xs)

    calls = {name: both(fn) for name, fn in fns.items()}
    try:
        with np.errstate(all="ignore"):
            calls[who]()
            _time(f"{case.name}, engine", calls, ENGINE, report, progress)
    except Exception as error:
        report.refused.append(f"{case.name}, engine: {error}")


def _loss(report: Report, progress: Progress) -> None:
    """Cross entropy of many classes, on two cores."""
    torch = load("torch")
    import gradsmith as gs

    n = 64 if report.options.quick else 4096
    torch.set_num_threads(2)
    x = torch.randn(n, n, requires_grad=True)
    labels = torch.randint(0, n, (n,))
    own = torch.nn.functional.cross_entropy
    compiled = torch.compile(own)
    to = torch.empty(n, n)

    def both(fn: Callable[..., Any]) -> Callable[[], Any]:
        return lambda: torch.autograd.grad(fn(x, labels), x)

    calls = {
        "ours": both(gs.ops.cross_entropy),
        "torch.compile": both(compiled),
        "eager": both(own),
        COPY: lambda: (to.copy_(x.detach()), to.copy_(x.detach())),
    }
    name = f"cross_entropy, PyTorch, {n} x {n}, two cores"
    _time(name, calls, LOSS, report, progress)


def _time(
    name: str,
    calls: dict[str, Any],
    target: float | None,
    report: Report,
    progress: Progress,
) -> None:
    rounds, turn = (1, 0.001) if report.options.quick else (10, 0.03)
    seconds = interleaved(calls, progress, rounds=rounds, turn=turn)
    for i, peer in enumerate([each for each in calls if each != "ours"]):
        report.rows.append(
            Row(
                case=name,
                ours=seconds["ours"] * 1e6,
                peer=seconds[peer] * 1e6,
                peer_name=peer,
                target=None if i else target,
                unit="us",
            )
        )


_SCRIPT = """
import time
import numpy as np
import gradsmith as gs
x = np.ones((128, 1024), np.float32)
for name in ("silu", "softplus"):
    start = time.perf_counter()
    getattr(gs.ops, name)(x)
    print(time.perf_counter() - start)
"""


def _first(report: Report) -> None:
    """Seconds for a process' first kernel, and for another one."""
    command = [sys.executable, "-c", _SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    first, again = map(float, done.stdout.split())
    for name, seconds, most in (
        ("a first kernel", first, FIRST),
        ("another kernel", again, AGAIN),
    ):
        report.rows.append(Row(name, seconds, most, "allowed", 1.0, "s"))


def _size(shape: Any) -> str:
    return f"{shape[0] * shape[1]:,} elements"
