"""What TensorFlow's stateful operations returned, to be replayed.

A random operation has its state in a kernel, which nobody can read, and an assignment
should not be done twice. So the second run does none of them: it gets what the first
run got, in the same order. Of random numbers that costs the memory of the numbers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import Any

import tensorflow as tf

from ....core.errors import GradsmithError
from ....core.import_hooks import once_imported
from ....core.patching import patched
from ..private import (
    STATEFUL,
    default_graph,
    executing_eagerly,
    seeds_of_operations,
    variable_operations,
)


def _graph() -> Any:
    return None if executing_eagerly() else default_graph()


class Log:
    """What stateful operations returned, each with its name and the graph it is in."""

    def __init__(self) -> None:
        self.graph = _graph()
        self.entries: list[tuple[str, Any, Any]] = []

    def add(self, name: str, y: Any) -> None:
        self.entries.append((name, y, _graph()))

    def replayed(self) -> Iterator[tuple[str, Any]]:
        for name, y, graph in self.entries:
            if graph is not self.graph:
                raise GradsmithError(
                    f"{name} runs in a loop or a branch of a graph, inside a "
                    "checkpointed function: its result is gone when the function runs "
                    "again\n"
                    "  what to do: checkpoint the body of the loop, not the whole "
                    "loop; or call it before the loop"
                )
            yield name, y


class _Thread(threading.local):
    log: Log | None = None  # what the run that is going on has got so far
    rest: Iterator[Any] | None = None  # what a second run will get
    values: dict[int, Any] | None = None  # of variables, by their handles


_thread = _Thread()


@contextmanager
def logged(log: Log) -> Iterator[None]:
    """Keep what stateful operations return."""
    outer = _thread.log
    try:
        with patched(_thread, log=log):
            yield
    finally:
        if outer is not None:  # a block in a block
            outer.entries += log.entries


@contextmanager
def replayed(log: Log, values: dict[int, Any]) -> Iterator[None]:
    """Return it again, without running them; variables in graphs have these values.

    The gradient of a loop can't read variables by itself.
    """
    values = {**(_thread.values or {}), **values}
    rerun = patched(_thread, log=None, rest=log.replayed(), values=values)
    with rerun, _seeds_unchanged():
        yield


@contextmanager
def _seeds_unchanged() -> Iterator[None]:
    """Eager operations that will not run draw their seeds all the same."""
    seeds = seeds_of_operations()
    state = seeds.getstate() if seeds is not None else None
    try:
        yield
    finally:
        if seeds is not None:
            seeds.setstate(state)


def paused() -> AbstractContextManager[None]:
    """Neither keep nor return anything: what is traced now may be called later."""
    return patched(_thread, log=None, rest=None, values=None)


def is_running() -> bool:
    """Whether a checkpointed function is."""
    return _thread.log is not None or _thread.rest is not None


def is_rerun() -> bool:
    """Whether it is run for the second time."""
    return _thread.rest is not None


def _stateful(fn: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        if _thread.rest is not None:
            for name, y in _thread.rest:
                if name == fn.__name__:
                    if _thread.log is not None:
                        _thread.log.add(name, y)
                    return y
                break
            raise GradsmithError(
                "a checkpointed function runs other stateful operations when it is run "
                f"again: {fn.__name__} was not run there at first\n"
                "  what to do: let it depend only on its arguments and what it captures"
            )
        log = _thread.log
        if log is None:
            return fn(*args, **kwargs)
        with patched(_thread, log=None):  # what it calls is a part of it
            y = fn(*args, **kwargs)
        log.add(fn.__name__, y)
        return y

    return run


def _reading(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Reading a variable, which may have a value for the time of a second run."""

    @wraps(fn)
    def read(resource: Any, *args: Any, **kwargs: Any) -> Any:
        values = _thread.values
        if values is not None and id(resource) in values:
            value = values[id(resource)]
            if fn.__name__ == "read_variable_op":
                return value
            return tf.gather(value, args[0] if args else kwargs["indices"])
        return fn(resource, *args, **kwargs)

    return read


def _install(module: Any, names: Any, around: Any = _stateful) -> None:
    for name in names:
        if hasattr(module, name):
            setattr(module, name, around(getattr(module, name)))


# The kinds that operations have in graphs, which tf.raw_ops calls them by too
STATEFUL_KINDS = frozenset(
    "".join(word.capitalize() for word in name.split("_"))
    for names in STATEFUL.values()
    for name in names
)
for _module, _names in STATEFUL.items():
    _install(_module, _names)
_install(tf.raw_ops, STATEFUL_KINDS)
_install(variable_operations, ["read_variable_op", "resource_gather"], _reading)
# A seed is read, and the next one assigned: as two, the second run would read the next.
once_imported("keras", lambda keras: _install(keras.random.SeedGenerator, ["next"]))
