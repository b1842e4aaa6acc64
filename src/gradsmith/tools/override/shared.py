"""What intercepts calls for the whole process, once, as long as any scope needs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import RLock

from .scope import Context

_lock = RLock()
_installed: dict[Context, tuple[int, ExitStack]] = {}


@contextmanager
def shared(context: Context) -> Iterator[None]:
    """Enter a context unless somebody has; the last one who leaves closes it."""
    with _lock:
        users, stack = _installed.get(context, (0, ExitStack()))
        if not users:
            stack.enter_context(context())
        _installed[context] = (users + 1, stack)
    try:
        yield
    finally:
        with _lock:
            users, stack = _installed[context]
            if users > 1:
                _installed[context] = (users - 1, stack)
            else:
                del _installed[context]
                stack.close()
