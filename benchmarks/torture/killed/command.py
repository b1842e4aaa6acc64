"""`gradsmith` in a process of its own, run to its end or killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATIENCE = 10.0  # seconds in which the workers of a dead parent must end


@dataclass(frozen=True)
class Run:
    """What a run said."""

    status: int
    results: dict[str, Any]  # verdict of each operation
    errors: str
    seconds: float


OPTIONS = {
    "check": ["--framework", "numpy", "--quick"],
    "audit": ["--exhaustive", "--domain", "0.9", "1.2"],  # two spans of all numbers
}


@dataclass(frozen=True)
class Command:
    """`gradsmith check PATH` or `gradsmith audit PATH`, with a journal."""

    name: str
    path: Path
    journal: Path

    def _line(self) -> list[str]:
        options = [*OPTIONS[self.name], "--jobs", "2", "--json"]
        command = [sys.executable, "-m", "gradsmith", self.name, str(self.path)]
        return [*command, *options, "--resume", str(self.journal)]

    def run(self) -> Run:
        start = time.monotonic()
        done = subprocess.run(self._line(), capture_output=True, text=True)
        assert done.stdout.strip(), f"no JSON: {done.stderr[-300:]}"
        found = json.loads(done.stdout)["results"]
        results = dict(map(self._verdict, found))
        return Run(done.returncode, results, done.stderr, time.monotonic() - start)

    def _verdict(self, result: dict[str, Any]) -> tuple[str, Any]:
        if self.name == "check":
            return result["name"], result["status"]
        report = result["report"]
        errors = [report[part]["max_ulp"] for part in ("value", "gradient")]
        return Path(result["target"]).name, (report["ok"], report["points"], *errors)

    def killed(self, sign: signal.Signals, after: float) -> list[str]:
        """Start a run, end it, and say which of its processes are still there."""
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(self._line(), start_new_session=True, **quiet)
        time.sleep(after)
        process.send_signal(sign)
        process.wait(timeout=60)
        end = time.monotonic() + PATIENCE
        while (left := _of_session(process.pid)) and time.monotonic() < end:
            time.sleep(0.1)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        return [f"{pid}: {name}" for pid, name in left.items()]


def _of_session(session: int) -> dict[int, str]:
    """The processes of a session, by Linux' list of them."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text()
        except OSError:  # it has just ended
            continue
        name, rest = (
            text[text.index("(") + 1 : text.rindex(")")],
            text.rpartition(")")[2],
        )
        state, _, _, sid = rest.split()[:4]
        if int(sid) == session and state != "Z":
            found[int(path.parent.name)] = name
    return found
