"""A budget of time: checks stop when it is used up, with the verdict so far.

Each evaluation of an operation asks whether there is time left. One that does not
return at all, such as a compiled loop that never converges at inputs that we made up,
can't be interrupted: such inputs are tried in a thread, which is left behind.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextvars import copy_context

import numpy as np

from ...core.hooks import unrecorded

GRACE = 1.0  # an evaluation that began in time may end
SHORT = 6.0  # seconds, in which the most telling check comes first


class OutOfTimeError(BaseException):
    """The time is up. No `Exception`: what we try and give up must not catch it."""


class Budget:
    """The seconds for one check; None is no limit."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self._end = None if seconds is None else time.perf_counter() + seconds

    @property
    def is_short(self) -> bool:
        return self.seconds is not None and self.seconds < SHORT

    @property
    def left(self) -> float | None:
        return None if self._end is None else self._end - time.perf_counter()

    def require_time(self) -> None:
        if self._end is not None and time.perf_counter() > self._end:
            raise OutOfTimeError

    def run_aside(self, work: Callable[[], None]) -> None:
        """Run something that may never return, at most until the time is up."""
        if self._end is None:
            return work()
        raised: list[BaseException] = []

        def run() -> None:
            try:
                # As it is for the caller, in its own thread
                with unrecorded(), np.errstate(all="ignore"):
                    work()
            except BaseException as error:
                raised.append(error)

        context = copy_context()
        thread = threading.Thread(target=context.run, args=(run,), daemon=True)
        thread.start()
        thread.join(max(self.left or 0.0, 0.0) + GRACE)
        if thread.is_alive():
            raise OutOfTimeError
        if raised:
            raise raised[0]
        return None


UNLIMITED = Budget(None)
