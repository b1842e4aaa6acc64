"""The moments at which others may look at what happens here, or step in.

No tool patches a function of ours: who wants to see or change something wraps the hook
of that moment for a while. A hook that nobody wraps costs one test of an attribute.

>>> seen = []
>>> def noted(proceed, operation, args, kwargs):
...     seen.append(operation)
...     return proceed(operation, args, kwargs)
>>> with CALL.wrapped(noted):
...     CALL.run(lambda operation, args, kwargs: sum(args), "add", (1, 2), {})
3
>>> seen
['add']
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

_changing = threading.RLock()  # of two threads, one would put back the other's


class Hook:
    """One moment. A wrapper is called as `wrapper(proceed, *what)`.

    It returns what the moment gives: `proceed(*what)`, or something else.
    """

    __slots__ = ("wrappers",)

    def __init__(self) -> None:
        self.wrappers: tuple[Callable[..., Any], ...] = ()  # the innermost last

    @contextmanager
    def wrapped(self, wrapper: Callable[..., Any]) -> Iterator[None]:
        """Let a wrapper see the moment within a `with` block."""
        self.add(wrapper)
        try:
            yield
        finally:
            self.remove(wrapper)

    def add(self, wrapper: Callable[..., Any]) -> None:
        with _changing:
            self.wrappers = (*self.wrappers, wrapper)

    def remove(self, wrapper: Callable[..., Any]) -> None:
        """Take away the wrapper that was added last, of those that are equal to it."""
        with _changing:
            kept = list(self.wrappers)
            del kept[len(kept) - 1 - kept[::-1].index(wrapper)]
            self.wrappers = tuple(kept)

    def run(self, proceed: Callable[..., Any], *what: Any) -> Any:
        """What the moment gives, by way of all wrappers; the first one is outermost."""
        for wrapper in reversed(self.wrappers):
            proceed = partial(wrapper, proceed)
        return proceed(*what)


CALL = Hook()  # an operation was called: (operation, args, kwargs)
FUNCTION = Hook()  # a function of NumPy's was, on tensors: (function, args, kwargs)
BODY = Hook()  # the body of an operation runs: (operation, bound) -> outputs, grad
RULE = Hook()  # a rule runs: (application, what, rule, args, kwargs) -> its answer
RECOMPUTE = Hook()  # a checkpointed function runs: (fn, args, kwargs)

_thread = threading.local()


@contextmanager
def unrecorded() -> Iterator[None]:
    """What this thread calls within is a tool's doing, and no test's.

    >>> with unrecorded():
    ...     is_recorded()
    False
    """
    before = is_recorded()
    _thread.recorded = False
    try:
        yield
    finally:
        _thread.recorded = before


def is_recorded() -> bool:
    """Whether calls that this thread makes now are for a recorder to remember."""
    return getattr(_thread, "recorded", True)
