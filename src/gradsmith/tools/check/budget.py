"""A budget of time: checks stop when it is used up, with the verdict so far.

Each evaluation of an operation asks whether there is time left. One that does not
return at all, such as a compiled loop that never converges at inputs that we made up,
can't be interrupted: such inputs are tried in a thread, which is left behind.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from contextvars import copy_context
from queue import SimpleQueue
from typing import TypeVar

import numpy as np

from ...core.hooks import unrecorded

T = TypeVar("T")
GRACE = 1.0  # seconds in which an evaluation that began in time may end
BEYOND = 0.1  # of the budget, which is what they are at most
SHORT = 6.0  # seconds, in which the most telling check comes first
AT_EXIT = 10.0  # seconds for compiled code: if it ends after the interpreter, it aborts
LONG = 0.05  # of the budget, for one evaluation


class OutOfTimeError(BaseException):
    """The time is up. No `Exception`: what we try and give up must not catch it."""


class Budget:
    """The seconds for one check; None is no limit.

    Those `spent` before it began, as on importing a framework, leave half at least.
    What is left behind of compiled code is waited for when the interpreter ends.
    """

    def __init__(
        self,
        seconds: float | None,
        *,
        compiled: bool = True,
        spent: float = 0.0,
    ) -> None:
        self.seconds = seconds
        self.compiled = compiled
        self._end: float | None = None
        if seconds is not None:
            self._end = time.perf_counter() + max(seconds - spent, seconds / 2)

    @property
    def is_short(self) -> bool:
        return self.seconds is not None and self.seconds < SHORT

    @property
    def left(self) -> float | None:
        return None if self._end is None else self._end - time.perf_counter()

    def is_long(self, seconds: float) -> bool:
        """Whether evaluations that take so long could go far beyond the budget."""
        return self.seconds is not None and seconds > LONG * self.seconds

    def require_time(self) -> None:
        if self._end is not None and time.perf_counter() > self._end:
            raise OutOfTimeError

    def run_aside(self, work: Callable[[], T]) -> T:
        """Run something that may never return, at most until the time is up."""
        if self._end is None:
            return work()
        self.require_time()
        found: list[T] = []
        raised: list[BaseException] = []

        def run() -> None:
            try:
                # As it is for the caller, in its own thread
                with unrecorded(), np.errstate(all="ignore"):
                    found.append(work())
            except BaseException as error:
                raised.append(error)

        context = copy_context()
        done = _thread().start(lambda: context.run(run))
        grace = min(GRACE, BEYOND * (self.seconds or 0.0))
        if not done.wait(max(self.left or 0.0, 0.0) + grace):
            if self.compiled:
                _abandoned.append(done)
            raise OutOfTimeError
        if raised:
            raise raised[0]
        return found[0]


UNLIMITED = Budget(None)
_abandoned: list[threading.Event] = []


@atexit.register
def _wait() -> None:
    """For all that was left behind, together."""
    end = time.perf_counter() + AT_EXIT
    for done in _abandoned:
        done.wait(max(end - time.perf_counter(), 0.0))


class _Thread:
    """A thread that runs one thing after another.

    It is used again, since frameworks keep something of each thread that they have
    seen: MLX 7 kB, TensorFlow 300 bytes.
    """

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], None], threading.Event]]
        self._jobs = SimpleQueue()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def start(self, job: Callable[[], None]) -> threading.Event:
        """Run something that does not raise; what is returned tells that it ended."""
        done = threading.Event()
        self._jobs.put((job, done))
        return done

    def _run(self) -> None:
        while True:
            job, done = self._jobs.get()
            job()
            del job
            _idle.append(self)
            done.set()


_idle: list[_Thread] = []


def _thread() -> _Thread:
    """One that has nothing to do, and is of this process."""
    while _idle:
        found = _idle.pop()
        if found.thread.is_alive():
            return found
    return _Thread()
