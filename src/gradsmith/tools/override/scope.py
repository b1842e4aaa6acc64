"""Which overrides hold here and now, and what holds them in place.

What intercepts calls is installed for the whole process, once, as long as any scope
needs it. Whether a call is changed is a matter of the scopes of its own context: other
threads, and code outside of the `with`, go on as ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from ...core.places import place_here
from .record import Record

Context = Callable[[], AbstractContextManager[Any]]


@dataclass(frozen=True)
class Target:
    """Something whose calls can be changed.

    `key` is what interceptors know it by; `contexts` install them, `shared` those that
    serve the whole process.
    """

    key: Hashable
    name: str
    contexts: tuple[Context, ...] = ()
    shared: tuple[Context, ...] = ()
    held: Any = None  # keeps alive what the key is an id of
    afresh: bool = True  # any framework may have compiled it: let its Python run again


@dataclass(eq=False)
class Scope:
    """One `with`: what stands in the place of each target."""

    replacements: dict[Hashable, Any]
    record: Record
    model: Any = None  # calls inside of this one only
    contexts: tuple[Context, ...] = ()  # of its own, not shared
    called: Counter[Hashable] = field(default_factory=Counter)  # targets, by their keys
    hidden: dict[Hashable, Any] = field(default_factory=dict)  # where out of reach
    bare: dict[Hashable, Any] = field(default_factory=dict)  # called without arrays
    seen: Counter[str] = field(default_factory=Counter)  # all that interceptors saw
    number: int = field(default_factory=count(1).__next__)
    holds: ExitStack = field(default_factory=ExitStack)  # what intercepts its calls
    ended: bool = False


_open: ContextVar[tuple[Scope, ...]] = ContextVar("open", default=())  # oldest first
_entered: ContextVar[tuple[Scope, ...]] = ContextVar("entered", default=())
_off: ContextVar[int] = ContextVar("off", default=0)  # scopes up to this number
_suspended: ContextVar[frozenset[Hashable]] = ContextVar(
    "suspended", default=frozenset()
)
_ruler: ContextVar[str | None] = ContextVar("ruler", default=None)


def begin(scope: Scope) -> None:
    """Let a scope hold; one of a model waits until that is called."""
    _open.set((*_alive(), scope))


def end(scope: Scope) -> None:
    """Let a scope hold no more, also if others were opened after it and still hold."""
    scope.ended = True
    _open.set(_alive())


def _alive() -> tuple[Scope, ...]:
    # One may have ended elsewhere: in a generator, or a task with a context of its own.
    return tuple(scope for scope in _open.get() if not scope.ended)


def _active() -> list[Scope]:
    """The scopes that hold here and now, the innermost last."""
    off, entered = _off.get(), _entered.get()
    return [
        scope
        for scope in _open.get()
        if not scope.ended
        and scope.number > off
        and (scope.model is None or scope in entered)
    ]


def is_open(scope: Scope) -> bool:
    """Whether it was opened in this context, and has not ended."""
    return scope in _alive()


@contextmanager
def _given(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """For the time of one call, which ends before its caller does."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def inside(*models: Any) -> Iterator[None]:
    """Let the scopes that wait for one of these models hold."""
    waiting = [scope for scope in _open.get() if scope.model is not None]
    due = [s for s in waiting if any(s.model is model for model in models)]
    with _given(_entered, (*_entered.get(), *due)) if due else ExitStack():
        yield


def off() -> AbstractContextManager[None]:
    """While code of a replacement runs: it says itself what it wants."""
    return _given(_off, max((s.number for s in _open.get()), default=0))


def ruled_by(name: str) -> AbstractContextManager[None]:
    """While a function runs that has a rule: no gradient goes through what it calls."""
    return _given(_ruler, name)


def without(key: Hashable) -> AbstractContextManager[None]:
    """While the target itself runs, which the replacement has called."""
    return _given(_suspended, _suspended.get() | {key})


def found(key: Hashable, name: str) -> tuple[Scope, Any] | None:
    """What stands in the place of a call, by the innermost scope that says so."""
    saw(name)
    if not is_due(key):
        return None
    scope = next(s for s in reversed(_active()) if key in s.replacements)
    ruler, replacement = _ruler.get(), scope.replacements[key]
    if ruler is not None:
        scope.record.left(replacement.target, ruler)
        return None
    return scope, replacement


def saw(name: str) -> None:
    """Something was called, which may be what the user meant."""
    for scope in _active():
        scope.seen[name] += 1


def numbers() -> tuple[int, ...]:
    """The scopes that hold or wait here, for caches."""
    off = _off.get()
    waiting = [scope.number for scope in _alive() if scope.number > off]
    return (*waiting, *(scope.number for scope in _active()))


def opened_with(context: Context) -> tuple[Scope, ...]:
    """The scopes that are open here and have entered a context."""
    return tuple(scope for scope in _alive() if context in scope.contexts)


def is_due(key: Hashable) -> bool:
    """Whether a call will be changed."""
    if key in _suspended.get():
        return False
    return any(key in scope.replacements for scope in _active())


def hidden(key: Hashable) -> None:
    """A target has run where its call could not be changed."""
    for scope in _active() if is_due(key) and _ruler.get() is None else ():
        if key in scope.replacements:
            scope.hidden[key] = place_here()
