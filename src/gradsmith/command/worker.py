"""The worker process: what it does, and how the other side sees to it.

Standard output and error go to a file from the start, of C code too, so that they are
there even after a crash.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from .tasks import Listing, Sofar, Task, perform

GRACE = 0.5  # seconds beyond the limit in which it can still say where it was


def serve(connection: Any, log: str, trace: str, limit: float) -> None:
    """Answer tasks until there are no more."""
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C is for the other side; and all children end with it
    _redirect(log)
    with Path(trace).open("w") as places:
        faulthandler.enable(places)

        def tell(phase: str | Sofar) -> None:
            faulthandler.dump_traceback_later(limit, file=places)
            connection.send(phase)

        while True:
            try:
                task = connection.recv()
            except EOFError:
                return
            os.truncate(log, 0)
            answer = perform(task, tell)
            faulthandler.cancel_dump_traceback_later()
            connection.send(answer)


def _redirect(log: str) -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    file = os.open(log, os.O_WRONLY | os.O_APPEND)
    for number in (1, 2):
        os.dup2(file, number)
    # Nothing is left in a buffer when the process ends without notice.
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = open(number, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@contextmanager
def _deaf() -> Iterator[None]:
    """Without ears for Ctrl-C, which a process that is started here inherits.

    It is held back, not ignored: one that comes meanwhile is heard afterwards.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Worker:
    """A process that answers one task at a time."""

    def __init__(self, root: str, limit: float) -> None:
        self.root = root
        self.limit = limit
        self.task: Task | None = None
        self.phase = "imported"
        self.sofar: Any = None  # the result, if only more to it is missing
        self.since = 0.0
        self.began = 0.0
        self.loaded = ""
        self._files = tempfile.TemporaryDirectory(prefix="gradsmith-")
        self.log = Path(self._files.name, "log")
        self.trace = Path(self._files.name, "trace")
        for path in (self.log, self.trace):
            path.touch()
        context = get_context("spawn")  # threads of frameworks don't survive a fork
        self.connection, theirs = context.Pipe()
        files = str(self.log), str(self.trace)
        # Not a daemon: those may not have children, and users' code may.
        self.process = context.Process(target=serve, args=(theirs, *files, limit))
        with _deaf():
            self.process.start()
        theirs.close()

    def give(self, task: Task) -> None:
        self.task, self.phase, self.loaded = task, "imported", task.source.file
        self.sofar = None
        self.began = self.since = time.monotonic()
        # One that has just died is found dead when its answer is asked for
        with suppress(OSError):
            self.connection.send(task)

    def receive(self) -> Listing | Any | None:
        """The answer, if it is one; EOFError if the process has ended."""
        try:
            message = self.connection.recv()
        except OSError:
            raise EOFError from None
        if isinstance(message, str):
            self.phase, self.since = message, time.monotonic()
            return None
        if isinstance(message, Sofar):
            self.sofar = message.result
            return None
        self.task = None
        return message

    @property
    def is_late(self) -> bool:
        return time.monotonic() - self.since > self.limit + GRACE

    @property
    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def memory(self) -> int:
        """Bytes that it holds."""
        pid = self.process.pid
        try:
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE")
        except FileNotFoundError:
            if sys.platform in ("linux", "win32"):
                return 0
        ps = ["ps", "-o", "rss=", "-p", str(pid)]
        found = subprocess.run(ps, capture_output=True, text=True, check=False).stdout
        return int(found or 0) * 1024

    def kill(self) -> int | None:
        """End it, with its children, and return its exit status."""
        pid = self.process.pid
        if hasattr(os, "killpg") and pid is not None and self.process.is_alive():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)  # once it has a group of its own
        self.process.kill()
        self.process.join()
        self.connection.close()
        return self.process.exitcode

    def clean(self) -> None:
        self._files.cleanup()
