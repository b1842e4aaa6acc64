"""What `gs.check` costs: seconds of small and of large checks, and memory.

Each framework is measured in a process of its own: a first check, which may compile,
and the best of the following ones. Memory is the peak beyond what was there before the
check, in sizes of the input: linear if a ten times larger input needs no more of them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import gradsmith as gs
import gradsmith.numpy as gnp
from benchmarks._measure import Progress
from benchmarks._peers import load
from benchmarks._report import Options, Report, Row
from gradsmith._check.kits import kit_for
from gradsmith._subject import subject_of
from gradsmith._survival.probe import first_line

SMALL, RIGHT, WRONG = 0.3, 1.0, 3.0  # seconds
LINEAR = 1.5  # memory for each element, of 10**6 over 10**5 of them
FRAMEWORKS = {
    "numpy": "engine",
    "torch": "PyTorch",
    "jax": "JAX",
    "tensorflow": "TensorFlow",
}
LARGE = ("numpy", "torch")  # the large ones are measured in these


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


# --- measured in a process of its own ------------------------------------------------


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
    kit_for(framework)
    subject_of(elementwise(), framework)


def _seconds(call: Callable[[], None]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def _right(op: Any, x: np.ndarray, framework: str) -> None:
    report = gs.check(op, x, framework=framework)
    if not report.ok:  # a wrong verdict is easily fast
        raise AssertionError(f"a right gradient was not accepted: {report}")


def _located(op: Any, x: np.ndarray, framework: str, place: int) -> None:
    report = gs.check(op, x, framework=framework)
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


# --- the report ----------------------------------------------------------------------


def run(options: Options) -> Report:
    report, progress = Report("check", options), Progress("check")
    rounds = 1 if options.quick else 5
    others = [name for name in FRAMEWORKS if name != "numpy"]
    for name in ["numpy", *report.available(*others)]:
        progress(f"{FRAMEWORKS[name]}, small")
        _add(report, name, lambda name=name: _small_rows(name, rounds))
    for name in LARGE:
        if name == "numpy" or (name in options.peers and find_spec(name)):
            progress(f"{FRAMEWORKS[name]}, large")
            _add(report, name, lambda name=name: _large_rows(name, options.quick))
    return report


def _add(report: Report, name: str, rows: Callable[[], list[Row]]) -> None:
    try:
        report.rows += rows()
    except Exception as error:
        report.refused.append(f"{FRAMEWORKS[name]}: {first_line(error)}")


def _small_rows(name: str, rounds: int) -> list[Row]:
    found = _in_a_process("small", name, rounds)
    return [
        _row(
            f"{FRAMEWORKS[name]}, 3 x 4 {case}",
            seconds,
            SMALL,
            # A first check may wait for a framework that compiles.
            target=1.0 if case.endswith("again") else None,
        )
        for case, seconds in found.items()
    ]


def _large_rows(name: str, quick: bool) -> list[Row]:
    tenth, whole = (10**4, 10**5) if quick else (10**5, 10**6)
    rounds = 1 if quick else 3
    little = _in_a_process("large", name, tenth, 1)
    much = _in_a_process("large", name, whole, rounds)
    title = f"{FRAMEWORKS[name]}, {whole:,} elements"
    return [
        _row(f"{title}, right", much["right"], RIGHT),
        _row(f"{title}, one wrong located", much["wrong"], WRONG),
        Row(
            f"{title}, memory in sizes of the input",
            much["memory"],
            little["memory"],
            f"{tenth:,} elements",
            LINEAR,
            "",
        ),
    ]


def _row(case: str, seconds: float, most: float, target: float | None = 1.0) -> Row:
    return Row(case, seconds, most, "at most", target, "s")


def _in_a_process(what: str, *args: Any) -> dict[str, float]:
    """What a function of this module finds in a fresh interpreter."""
    program = (
        "import json; from benchmarks import check; "
        f"print(json.dumps(check.{what}(*{args!r})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout.splitlines()[-1])
