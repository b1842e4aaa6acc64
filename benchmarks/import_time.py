"""What `import gradsmith` costs beyond `import numpy`, each in a fresh interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks._measure import Progress
from benchmarks._report import Options, Report, Row

TARGET = 1.3
PROGRAM = """
from time import perf_counter
start = perf_counter()
import {module}
print(perf_counter() - start)
"""


def run(options: Options) -> Report:
    report, progress = Report("import", options), Progress("import")
    times = _measured(progress, rounds=2 if options.quick else 25)
    # A median: every import is a new process with its own luck, and the system's share
    # (reading, mapping) is part of what an import costs.
    report.rows.append(
        Row(
            case="import gradsmith",
            ours=median(times["gradsmith"]) * 1e3,
            peer=median(times["numpy"]) * 1e3,
            peer_name="import numpy",
            target=TARGET,
            unit="ms",
        )
    )
    return report


def _measured(progress: Progress, rounds: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {"gradsmith": [], "numpy": []}
    with TemporaryDirectory() as cache:
        for module in times:  # compiles both into the cache, and reads the files once
            _seconds(module, cache)
        for done in range(rounds):
            progress(f"round {done + 1} of {rounds}")
            for module, seconds in times.items():
                seconds.append(_seconds(module, cache))
    return times


def _seconds(module: str, cache: str) -> float:
    environment = {**os.environ, "PYTHONPATH": _path(), "PYTHONPYCACHEPREFIX": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(module=module)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def _path() -> str:
    """Where this process finds gradsmith, also if it is not installed."""
    spec = find_spec("gradsmith")
    if spec is None or spec.origin is None:
        raise SystemExit("gradsmith is not installed: pip install -e .")
    return os.pathsep.join(
        [str(Path(spec.origin).parent.parent), os.environ.get("PYTHONPATH", "")]
    )
