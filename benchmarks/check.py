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
from typing import Any

from benchmarks._measure import Progress
from benchmarks._report import Options, Report, Row
from gradsmith.core.errors import first_line

SMALL, RIGHT, WRONG = 0.3, 1.0, 3.0  # seconds
LINEAR = 1.5  # memory for each element, of 10**6 over 10**5 of them
FRAMEWORKS = {
    "numpy": "engine",
    "torch": "PyTorch",
    "jax": "JAX",
    "tensorflow": "TensorFlow",
}
LARGE = ("numpy", "torch")  # the large ones are measured in these


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
    """What a function of `_checks` finds in a fresh interpreter."""
    program = (
        "import json; from benchmarks import _checks; "
        f"print(json.dumps(_checks.{what}(*{args!r})))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout.splitlines()[-1])
