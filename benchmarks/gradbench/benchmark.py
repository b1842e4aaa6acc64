"""Real programs: GradBench's problems, with our tape and with the peers.

Everybody has one thread. The results of all are compared before they are timed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks._peers import PEERS
from benchmarks._report import Options, Report, Row
from benchmarks.gradbench import SEED
from gradsmith.core import is_compiled

PROBLEMS = (
    "hello",
    "lse",
    "llsq",
    "gmm",
    "det",
    "lstm",
    "ba",
    "ode",
    "kmeans",
    "ht",
    "particle",
    "saddle",
)
# JAX compiles the whole program; it stands here to be read, as does the tape where its
# hot path is not compiled.
PYTHON = "the tape as Python"
TARGETS: dict[str, dict[str, float | None]] = {
    "the tape": {"torch": 1.0, "autograd": 0.7, "jax": None},
    PYTHON: {"torch": None, "autograd": None},
    "gs.compile": {"torch": 0.3, "autograd": None, "jax": None},
}
SOURCES = Path(__file__).parents[2] / "src"
ENVIRONMENT = {  # one thread, and JAX in float64 as the others
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
    "JAX_ENABLE_X64": "1",
}


def run(options: Options) -> Report:
    report = Report("gradbench", options)
    peers = report.available("torch", "autograd", "jax")
    chosen = (options.selection or {}).get("only", "")
    problems = [problem for problem in PROBLEMS if chosen in problem]
    measured = _in_a_process(problems, options.quick, peers)
    if is_compiled():
        path = os.pathsep.join(map(str, (SOURCES, SOURCES.parent)))
        python = _in_a_process(problems, options.quick, [], PYTHONPATH=path)
        for found, other in zip(measured, python, strict=True):
            for row, plain in zip(found["rows"], other["rows"], strict=True):
                row["seconds"][PYTHON] = plain["seconds"]["the tape"]
    for found in measured:
        _add(report, found)
    report.notes.append(f"seed of the inputs: {SEED}")
    return report


def _in_a_process(
    problems: list[str], quick: bool, peers: list[str], **environment: str
) -> list[dict[str, Any]]:
    module = "benchmarks.gradbench.measure"
    command = [sys.executable, "-m", module, ",".join(problems)]
    done = subprocess.run(
        [*command, "quick" if quick else "whole", *peers],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, **ENVIRONMENT, **environment},
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def _add(report: Report, found: dict[str, Any]) -> None:
    report.refused += found["refused"]
    for row in found["rows"]:
        seconds = row["seconds"]
        where = ", ".join(filter(None, (found["problem"], row["size"])))
        report.rows += [
            Row(
                case=f"{where}, {ours}",
                ours=seconds[ours] * 1e6,
                peer=seconds[peer] * 1e6,
                peer_name=PEERS[peer].title,
                target=target,
                unit="us",
            )
            for ours, targets in TARGETS.items()
            for peer, target in targets.items()
            if ours in seconds and peer in seconds
        ]
