"""A process that is warm, has run no code of the user's, and forks workers.

A fork takes milliseconds where importing a framework takes seconds, so that every item
can have a process of its own: nothing that one changes reaches the next.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from ...rules import load_present
from . import lifetime
from .channel import Channel
from .worker import Work, Worker, interrupts_held, redirect, serve

IS_POSSIBLE = lifetime.IS_LINUX  # elsewhere system libraries bear no fork
PATIENCE = 1.0  # seconds in which a worker that is gone from its channel may end


class Zygote:
    """The other side: asks for workers, and for their end."""

    def __init__(self, work: Work, preload: Sequence[str]) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        code = f"from {__name__} import main; main({theirs.fileno()})"
        paths = f"import sys; sys.path[:] = {sys.path!r}; "
        # Not by multiprocessing, whose helpers share their descriptors with workers.
        with theirs, interrupts_held():
            self.process = subprocess.Popen(
                [sys.executable, "-c", paths + code],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self.control.send(pickle.dumps((work, tuple(preload))))

    def fork(self, limit: float | None) -> Worker:
        """A worker, which starts once this process is ready."""
        ours, theirs = socket.socketpair()
        channel = Channel.of_parent(ours, plain=True)
        worker = Worker(channel, limit, ends=self.end, logged=True)
        words = json.dumps({"fork": worker.files, "limit": limit}).encode()
        with theirs, suppress(OSError):  # dead: the worker is never started
            socket.send_fds(self.control, [words], [theirs.fileno()])
        return worker

    def end(self, pid: int, *, now: bool) -> int | None:
        """End a worker with all that it has started; its exit status."""
        try:
            self.control.settimeout(10 * PATIENCE)
            self.control.send(json.dumps({"end": pid, "now": now}).encode())
            return json.loads(self.control.recv(1000))
        except (OSError, ValueError):
            lifetime.end_group(pid)
            return None

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        self.control.close()  # which it takes as a sign to leave
        try:
            self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:  # still importing: it has no children yet
            self.process.kill()
            self.process.wait()


def main(number: int) -> None:
    """Fork workers until nobody asks any more."""
    lifetime.lead_session()
    lifetime.adopt_orphans()
    redirect(os.devnull)
    control = socket.socket(fileno=number)
    work, preload = pickle.loads(control.recv(100_000))
    load_present()
    for name in preload:
        with suppress(Exception):  # whoever needs it is told
            import_module(name)
    gc.collect()
    gc.freeze()  # else a worker's first collection copies all of it
    workers = set[int]()
    while True:
        data, ends, _, _ = socket.recv_fds(control, 10_000, 1)
        if not data:
            break
        request = json.loads(data)
        if "fork" in request:
            workers |= _forked(control, work, request, ends[0])
        else:
            workers.discard(pid := request["end"])
            status = _ended(pid, PATIENCE * (not request["now"]))
            lifetime.end_orphans(workers, pid)
            control.send(json.dumps(status).encode())
    for pid in workers:
        lifetime.end_group(pid)
    lifetime.end_orphans(set(), None)


def _forked(
    control: socket.socket, work: Work, request: dict[str, Any], end: int
) -> set[int]:
    parent = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        os.close(end)
        return set()
    if pid:
        os.close(end)
        return {pid}
    try:
        control.close()
        channel = Channel.of_child(socket.socket(fileno=end), plain=True)
        serve(channel, work, request["fork"], request["limit"], parent)
    finally:
        os._exit(1)


def _ended(pid: int, patience: float) -> int | None:
    """The exit status if it ends by itself; None if it has to be ended."""
    until, is_over = time.monotonic() + patience, None
    seen = os.WEXITED | os.WNOHANG | os.WNOWAIT  # its number stays taken meanwhile
    try:
        while not is_over and time.monotonic() < until:
            is_over = os.waitid(os.P_PID, pid, seen)
            time.sleep(0 if is_over else 0.005)
        lifetime.end_group(pid)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return None
    return status if is_over else None
