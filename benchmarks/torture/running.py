"""Runs a part in a worker process, which is started anew where a trial killed it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from benchmarks._measure import Progress

from .outcome import Outcome
from .parts import Selection, names

PATIENCE = 300.0  # seconds that one trial may take
MOST = 2000  # trials of one worker: what compilers keep of each grows to 2 GB in these


def outcomes(part: str, selection: Selection, progress: Progress) -> Iterator[Outcome]:
    left = list(names(part, selection))
    total, bad = len(left), 0
    while left:
        for outcome in _worker(part, selection, left[:MOST]):
            left.pop(0)
            bad += outcome.is_bad
            progress(f"{part}, {total - len(left)} of {total}, {bad} bad")
            yield outcome


def _worker(part: str, selection: Selection, left: list[str]) -> Iterator[Outcome]:
    """Outcomes until all is done or the worker is dead."""
    command = [sys.executable, "-m", "benchmarks.torture.worker"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(
        command, stderr=subprocess.DEVNULL, env=_environment(), **pipes
    ) as worker:
        asked = {"part": part, "selection": asdict(selection), "names": left}
        worker.stdin.write(json.dumps(asked).encode() + b"\n")
        worker.stdin.flush()
        begun = left[0]
        for told in _lines(worker):
            if "begins" in told:
                begun = told["begins"]
                continue
            begun = ""
            yield Outcome(**{**told, "checks": tuple(told["checks"])})
        status = worker.wait()
        if begun:
            yield Outcome(part, begun, "crash", _death(status))


def _lines(worker: Any) -> Iterator[dict[str, Any]]:
    """What the worker tells; it is killed where it falls silent."""
    while True:
        if not select.select([worker.stdout], [], [], PATIENCE)[0]:
            worker.kill()
            return
        line = worker.stdout.readline()
        if not line:
            return
        yield json.loads(line)


def _death(status: int) -> str:
    if status == -signal.SIGKILL:
        return f"no end within {PATIENCE:g} s, or no memory"
    if status < 0:
        return f"Python was killed by {signal.Signals(-status).name}"
    return f"Python ended with status {status}"


def _environment() -> dict[str, str]:
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    # The C library counts what is free in a thread's cache as in use: 30 to 150 bytes
    # per call that are no leak
    memory = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    return {**quiet, **threads, **memory, "JAX_PLATFORMS": "cpu", **os.environ}
