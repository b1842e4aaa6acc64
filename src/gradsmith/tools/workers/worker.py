"""A worker process: what it does, and how the other side sees to it.

If it is limited, standard output and error go to a file from the start, of C code too,
so that they are there even after a crash; and so does where it was.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ...core.arrays import FRAMEWORKS

GRACE = 0.5  # seconds beyond the limit in which it can still say where it was

Tell = Callable[[Any], None]  # takes the phase that work is in, or a Partial
Work = Callable[[Any, Tell], Any]  # of an item


@dataclass(frozen=True)
class Partial:
    """A result to which more may come; it stands if nothing does."""

    result: Any


@dataclass(frozen=True)
class _Done:
    result: Any


@dataclass(frozen=True)
class _Raised:
    error: BaseException


def serve(connection: Any, work: Work, files: Any, limit: float | None) -> None:
    """Work on items until there are no more."""
    if hasattr(os, "setsid"):
        os.setsid()  # Ctrl-C is for the other side; and all children end with it
    else:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    with ExitStack() as stack:
        places = None
        if files is not None:
            log, trace = files
            _redirect(log)
            places = stack.enter_context(Path(trace).open("w"))
            faulthandler.enable(places)

        def tell(message: Any) -> None:
            if places is not None and limit is not None:
                faulthandler.dump_traceback_later(limit, file=places)
            connection.send(message)

        while True:
            try:
                item = connection.recv()
            except EOFError:
                return
            if files is not None:
                os.truncate(files[0], 0)
            _answer(connection, work, item, tell)


def _answer(connection: Any, work: Work, item: Any, tell: Tell) -> None:
    try:
        answer: Any = _Done(work(item, tell))
    except BaseException as error:
        answer = _Raised(_sendable(error))
    faulthandler.cancel_dump_traceback_later()
    try:
        connection.send(answer)
    except OSError:
        raise  # nobody is there any more
    except Exception as error:  # a result that can't be pickled
        connection.send(_Raised(_sendable(error)))


def _sendable(error: BaseException) -> BaseException:
    """An exception that can be pickled, with where it was raised."""
    where = f"In a worker process:\n{traceback.format_exc()}"
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(where)
    return error


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
    for framework in FRAMEWORKS.values():
        os.environ.update({**framework.quiet, **os.environ})


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold back Ctrl-C, which a process that is started here inherits.

    It is not ignored: one that comes meanwhile is heard afterwards.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Worker:
    """A process that works on one item at a time; with a limit, in seconds for each."""

    def __init__(self, work: Work, method: str, limit: float | None) -> None:
        self.limit = limit
        self.item: Any = None
        self.is_busy = False
        self.phase = ""
        self.partial: Any = None  # the result, if only more to it is missing
        self.since = 0.0
        self.began = 0.0
        self._folder: Any = None
        files = None
        if limit is not None:
            self._folder = tempfile.TemporaryDirectory(prefix="gradsmith-")
            files = tuple(str(Path(self._folder.name, n)) for n in ("log", "trace"))
            for path in files:
                Path(path).touch()
        self._files = files
        context = get_context(method)
        self.connection, theirs = context.Pipe()
        # Not a daemon: those may not have children, and users' code may.
        self.process = context.Process(  # type: ignore[attr-defined]
            target=serve, args=(theirs, work, files, limit)
        )
        with _interrupts_held(), warnings.catch_warnings():
            # Threads may not survive a fork: none of NumPy's and Arb's is needed
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process.start()
        theirs.close()

    def give(self, item: Any) -> None:
        self.item, self.is_busy, self.phase, self.partial = item, True, "", None
        self.began = self.since = time.monotonic()
        # One that has just died is found dead when its answer is asked for
        with suppress(OSError):
            self.connection.send(item)

    def receive(self) -> _Done | _Raised | None:
        """The answer, if it is one; EOFError if the process has ended."""
        try:
            message = self.connection.recv()
        except OSError:
            raise EOFError from None
        if isinstance(message, Partial):
            self.partial = message.result
            return None
        if isinstance(message, str):
            self.phase, self.since = message, time.monotonic()
            return None
        self.is_busy = False
        return message

    @property
    def is_late(self) -> bool:
        if self.limit is None:
            return False
        return time.monotonic() - self.since > self.limit + GRACE

    @property
    def output(self) -> str:
        """What it printed."""
        return self._read(0)

    @property
    def trace(self) -> str:
        """Where it was when it crashed or ran out of time, as `faulthandler` says."""
        return self._read(1)

    def _read(self, i: int) -> str:
        if self._files is None:
            return ""
        return Path(self._files[i]).read_text(encoding="utf-8", errors="replace")

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
        if self._folder is not None:
            self._folder.cleanup()
