"""The cases, each in a worker with a time limit that holds whatever the case does."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks._peers import is_installed

from .case import Case
from .cases import corpus

PATIENCE = 10  # times the limit by the clock, on a busy machine
STARTING = 180.0  # seconds to import a framework and a package, and make inputs


@dataclass(frozen=True)
class Selection:
    """What the command line asks for."""

    framework: str | None = None
    only: str = ""
    oracle: bool = False
    results: str | None = None
    limit: float = 60.0  # seconds until a check is ended


def run(selection: Selection, progress: Any) -> Iterator[tuple[Case, dict[str, Any]]]:
    """Every case with what came of it, as it comes; first those a file has already."""
    cases = [
        case
        for case in corpus(selection.framework, selection.only)
        if is_installed(case.framework)
    ]
    earlier = _read(selection.results)
    yield from ((c, earlier[c.name]) for c in cases if c.name in earlier)
    todo = [case for case in cases if case.name not in earlier]
    verb = "oracle" if selection.oracle else "check"
    limit = 10 * selection.limit if selection.oracle else selection.limit
    worker: Worker | None = None
    try:
        for done, case in enumerate(todo):
            progress(f"{done} of {len(todo)}, {case.name}")
            if worker is None or worker.framework != case.framework:
                if worker is not None:
                    worker.end()
                worker = Worker(case.framework)
            outcome = worker.ask(verb, case.name, limit)
            if not worker.alive:
                worker = None
            _write(selection.results, case, outcome)
            yield case, outcome
    finally:
        if worker is not None:
            worker.end()


class Worker:
    """A process for the cases of one framework."""

    def __init__(self, framework: str) -> None:
        self.framework = framework
        command = [sys.executable, "-m", "benchmarks.wild.worker", framework]
        settings = {
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "TF_USE_LEGACY_KERAS": "1",  # larq and others are older than Keras 3
        }
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **settings},
        )
        self.lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def ask(self, verb: str, name: str, limit: float) -> dict[str, Any]:
        assert self.process.stdin is not None
        print(verb, name, file=self.process.stdin, flush=True)
        ready = self._answer(STARTING)
        if "ready" not in ready:
            return {"verdict": "not made", "seconds": 0.0, **ready}
        start = time.perf_counter()
        answer = self._answer(limit)
        return {"seconds": time.perf_counter() - start, **answer}

    def _answer(self, limit: float) -> dict[str, Any]:
        """Its next line; the limit is of processor time, as the machine may be busy."""
        start, spent = time.perf_counter(), self._spent()
        while True:
            try:
                line = self.lines.get(timeout=0.5)
                break
            except queue.Empty:
                elapsed = time.perf_counter() - start
                if elapsed > PATIENCE * limit or self._spent() - spent > limit:
                    self.end()
                    text = f"no answer in {limit:g} s"
                    return {"verdict": "no verdict", "text": text}
        if line is None:
            code = self.process.wait()
            return {"verdict": "raised", "text": f"the process ended with {code}"}
        return json.loads(line)

    def _spent(self) -> float:
        """Seconds of processor time, or of the clock where the system can't tell."""
        try:
            with open(f"/proc/{self.process.pid}/stat") as file:
                user, system = file.read().rpartition(")")[2].split()[11:13]
        except OSError:
            return time.perf_counter()
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


def _read(path: str | None) -> dict[str, dict[str, Any]]:
    if path is None or not os.path.exists(path):
        return {}
    with open(path) as file:
        rows = [json.loads(line) for line in file]
    return {row["name"]: row["outcome"] for row in rows}


def _write(path: str | None, case: Case, outcome: dict[str, Any]) -> None:
    if path is not None:
        with open(path, "a") as file:
            print(json.dumps({"name": case.name, "outcome": outcome}), file=file)
