"""Who has opened a `with` block: a generator leaves it open while it is suspended.

A generator has no context of its own, so that what it opens would hold for its consumer
too. A generator that is a context manager, or a fixture, is run for that very purpose:
its block belongs to whoever enters it.
"""

from __future__ import annotations

import sys
from inspect import CO_ASYNC_GENERATOR, CO_GENERATOR, CO_ITERABLE_COROUTINE
from types import FrameType
from typing import Any

SUSPENDABLE = CO_GENERATOR | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE
_GENERATORS = (CO_GENERATOR, CO_ASYNC_GENERATOR)  # and none that is awaited

_CORE = f"{__name__.rpartition('.')[0]}."
# Who enters a block for their caller
ENTERING = {"__enter__", "__aenter__", "enter_context", "enter_async_context"}
# Packages that run a generator up to its `yield` for the test that follows
_RUNNERS = {"_pytest", "pluggy", "pytest_asyncio", "pytest_trio", "anyio"}


class Suspendable:
    """A generator within one of its `with` blocks."""

    __slots__ = ("_frame", "_task")

    def __init__(self, frame: FrameType) -> None:
        # It holds neither the generator nor its variables while that is alive.
        self._frame = frame
        is_async = frame.f_code.co_flags & CO_ASYNC_GENERATOR
        self._task = _current_task() if is_async else None

    def is_running(self) -> bool:
        """Whether it runs, or waits for what it calls.

        An async generator waits for tasks, too. Whether these were started by itself
        or by its consumer is not known; they are said to be its own.
        """
        return self._frame.f_back is not None or (
            self._task is not None and _current_task() is not self._task
        )


def frame_of_block() -> FrameType:
    """The frame whose `with` block calls the `__enter__` that asks.

    The methods of `core` have frames of their own only where they are not compiled.
    """
    frame: Any = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_globals.get("__name__", "").startswith(_CORE):
        frame = frame.f_back
    return frame


def opening_generator(frame: FrameType) -> Suspendable | None:
    """The generator in whose block a frame has called `__enter__`, if it is one's."""
    opener: FrameType | None = frame
    while opener is not None:
        code = opener.f_code
        if code.co_flags & SUSPENDABLE in _GENERATORS:
            resumer = opener.f_back
            if resumer is None or _runs_fixtures(resumer):
                return None  # at the bottom of a thread there is no consumer
            if resumer.f_code.co_name not in ENTERING:
                return Suspendable(opener)
        elif code.co_name not in ENTERING:
            return None
        opener = opener.f_back
    return None


def _runs_fixtures(frame: FrameType) -> bool:
    return frame.f_globals.get("__name__", "").partition(".")[0] in _RUNNERS


def _current_task() -> Any:
    asyncio: Any = sys.modules.get("asyncio")
    try:
        return asyncio and asyncio.current_task()
    except RuntimeError:  # no event loop runs
        return None
