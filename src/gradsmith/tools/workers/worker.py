"""A worker process: what it does, and how the other side sees to it.

If it is limited, standard output and error go to a file from the start, of C code too,
so that they are there even after a crash; and so does where it was.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from weakref import WeakSet

from ...core.arrays import FRAMEWORKS
from . import lifetime
from .channel import Channel, GarbledError

GRACE = 0.5  # seconds beyond the limit in which it can still say where it was
KEPT = 8000  # characters of a user's output
PRINTED = 100 * 2**20  # bytes of output beyond which it is dropped
START = 300.0  # seconds until a process is there
UNHEARD = 81  # the exit status of a worker whose channel is gone

Tell = Callable[[Any], None]  # takes the phase that work is in, or a Partial
Work = Callable[[Any, Tell], Any]  # of an item


@dataclass(frozen=True)
class Partial:
    """A result to which more may come; it stands if nothing does."""

    result: Any


def serve(
    channel: Channel, work: Work, files: Sequence[str] | None, limit: float | None,
    parent: int,
) -> None:  # fmt: skip
    """Work on items until there are no more."""
    lifetime.lead_session()
    lifetime.die_with(parent, channel)
    lifetime.end_forks_at_home()
    with ExitStack() as stack:
        places = None
        if files is not None:
            log, trace = files
            redirect(log)
            places = stack.enter_context(Path(trace).open("w"))
            faulthandler.enable(places)

        def tell(message: Any) -> None:
            if places is not None and limit is not None:
                faulthandler.dump_traceback_later(limit, file=places)
            if isinstance(message, Partial):
                send("partial", message.result)
            else:
                send("phase", message)

        me = os.getpid()

        def send(kind: str, value: Any) -> None:
            if os.getpid() != me:
                os._exit(0)  # a fork of the user's, which is not to answer
            try:
                channel.send((kind, value))
            except OSError:
                os._exit(UNHEARD)

        send("started", me)
        while True:
            try:
                item = channel.receive()
            except EOFError:
                return
            if files is not None:
                with suppress(OSError):
                    os.ftruncate(1, 0)
            _answer(channel, send, work, item, tell)


def _answer(
    channel: Channel, send: Callable[[str, Any], None], work: Work, item: Any,
    tell: Tell,
) -> None:  # fmt: skip
    try:
        kind, value = "done", work(item, tell)
    except BaseException as error:
        kind, value = "raised", _sendable(channel, error)
    faulthandler.cancel_dump_traceback_later()
    try:
        send(kind, value)
    except Exception as error:  # a result that can't be sent
        send("raised", _sendable(channel, error))


def _sendable(channel: Channel, error: BaseException) -> Any:
    """An exception with where it was raised; in words, if it can't be sent itself."""
    where = f"In a worker process:\n{traceback.format_exc()}"
    if channel.dumps is not pickle.dumps:
        return where
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(where)
    return error


def redirect(log: str) -> None:
    """Let all that is printed go to a file, and let frameworks print less."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    file = os.open(log, os.O_WRONLY | os.O_APPEND)
    for number in (1, 2):
        os.dup2(file, number)
    os.close(file)
    # Nothing is left in a buffer when the process ends without notice.
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = open(number, "w", buffering=1, encoding="utf-8", closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
    for framework in FRAMEWORKS.values():
        os.environ.update({**framework.quiet, **os.environ})


@contextmanager
def interrupts_held() -> Iterator[None]:
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
    """A process that works on one item at a time; with a limit, in seconds for each.

    `ends(pid, now=...)` ends it and gives its exit status, or None if it had to be
    killed; `now` if it can't be waited for.
    """

    def __init__(
        self, channel: Channel, limit: float | None, ends: Callable[..., int | None],
        *, logged: bool,
    ) -> None:  # fmt: skip
        self.channel, self.limit, self._ends = channel, limit, ends
        self.pid: int | None = None  # once it is known
        self.is_there = False
        self.item: Any = None
        self.is_busy = False
        self.phase = ""
        self.partial: Any = None  # the result, if only more to it is missing
        self.since = self.began = time.monotonic()
        self._folder: Any = None
        self.files: tuple[str, str] | None = None
        self._open: list[FileIO] = []  # the same
        if logged:
            with suppress(OSError):  # of a full disk: what it prints is lost
                self._open_files()

    def _open_files(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="gradsmith-")
        paths = [Path(self._folder.name, name) for name in ("log", "trace")]
        self._open = [path.open("w+b", buffering=0) for path in paths]
        self.files = str(paths[0]), str(paths[1])

    @classmethod
    def started(
        cls, work: Work, method: str, limit: float | None, *, plain: bool
    ) -> Worker:
        """A worker that this process starts itself, by `fork` or `spawn`."""
        ours, theirs = socket.socketpair()
        channel = Channel.of_parent(ours, plain=plain)
        worker = cls(
            channel,
            limit,
            ends=lambda pid, now: _ended(process, now),
            logged=plain or limit is not None,
        )
        _OPEN.add(channel)
        # Not a daemon: those may not have children, and users' code may.
        process: Any = get_context(method).Process(  # type: ignore[attr-defined]
            target=_serve_at,
            args=(theirs, plain, work, worker.files, limit, os.getpid()),
        )
        with interrupts_held(), warnings.catch_warnings():
            # Threads may not survive a fork: none of NumPy's and Arb's is needed
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        theirs.close()
        worker.pid = process.pid
        return worker

    def give(self, item: Any) -> None:
        self.item, self.is_busy, self.phase, self.partial = item, True, "", None
        self.began = self.since = time.monotonic()
        # One that has just died is found dead when its answer is asked for
        with suppress(OSError):
            self.channel.send(item)

    def receive(self) -> Iterator[tuple[str, Any]]:
        """Answers, "done" or "raised" with a value; EOFError if it has ended."""
        for message in self.channel.received():
            match message:
                case ["started", int(pid)] if not self.is_there:
                    self.pid, self.is_there = pid, True
                    self.began = self.since = time.monotonic()
                    if os.name == "posix":
                        self._remove()  # the worker has them open too
                case ["phase", str(words)]:
                    self.phase, self.since = words, time.monotonic()
                case ["partial", result]:
                    self.partial = result
                case ["done" | "raised" as kind, value]:
                    self.is_busy = False
                    yield kind, value
                case _:
                    raise GarbledError(str(message)[:40].encode())

    @property
    def is_late(self) -> bool:
        if self.limit is None:
            return False
        limit = self.limit if self.is_there else START
        return time.monotonic() - self.since > limit + GRACE

    @property
    def output(self) -> str:
        """The end of what it printed."""
        return self._read(0)

    @property
    def trace(self) -> str:
        """Where it was when it crashed or ran out of time, as `faulthandler` says."""
        return self._read(1)

    def _read(self, i: int) -> str:
        if not self._open:
            return ""
        file = self._open[i]
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 4 * KEPT))
        return file.read().decode("utf-8", "replace")[-KEPT:]

    def drop_output(self) -> None:
        """So that what prints without end fills no disk."""
        if self._open and self._open[0].seek(0, os.SEEK_END) > PRINTED:
            self._open[0].truncate(0)

    def memory(self) -> int:
        """Bytes that it holds."""
        if self.pid is None:
            return 0
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
            return pages * os.sysconf("SC_PAGE_SIZE")
        except (FileNotFoundError, ProcessLookupError):
            if sys.platform in ("linux", "win32"):
                return 0
        ps = ["ps", "-o", "rss=", "-p", str(self.pid)]
        found = subprocess.run(ps, capture_output=True, text=True, check=False).stdout
        return int(found or 0) * 1024

    def end(self, *, now: bool = True) -> int | None:
        """End it, with its children, and return its exit status."""
        status = None if self.pid is None else self._ends(self.pid, now=now)
        self.channel.close()
        return status

    def clean(self) -> None:
        for file in self._open:
            file.close()
        self._remove()

    def _remove(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()


_OPEN: WeakSet[Channel] = WeakSet()  # of which a fork has copies


def _serve_at(
    end: socket.socket, plain: bool, work: Work, files: Sequence[str] | None,
    limit: float | None, parent: int,
) -> None:  # fmt: skip
    """In a process that another has started."""
    for channel in list(_OPEN):
        channel.close()  # else the others would not notice that their parent is gone
    serve(Channel.of_child(end, plain=plain), work, files, limit, parent)


def _ended(process: Any, now: bool) -> int | None:
    if not now:
        process.join(1.0)
    status = process.exitcode
    if process.is_alive() and process.pid is not None:
        lifetime.end_group(process.pid)
    process.kill()
    process.join()
    return status
