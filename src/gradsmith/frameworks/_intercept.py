"""What is intercepted: targets, and the scopes that hold here and now.

What intercepts calls is installed for the whole process, once, as long as any scope
needs it. Whether a call is intercepted is a matter of the scopes of its own context:
other threads, and code outside of the `with`, go on as ever.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from threading import RLock
from types import CodeType, FrameType, FunctionType
from typing import Any, Protocol
from weakref import WeakValueDictionary

from ..core import trees
from ..core.arrays import FRAMEWORKS, is_array
from ..core.errors import GradsmithError
from ..core.patching import patched_function
from ..core.places import place_here
from ..operations.info import name_of, signature_of

Context = Callable[[], AbstractContextManager[Any]]


class ProcessWide:
    """A decorator for a context that is entered once, for the whole process.

    Who enters it second finds it installed; the last one who leaves closes it.
    """

    _lock = RLock()

    def __init__(self, context: Context) -> None:
        self._context = context
        self._users = 0
        self._installed = ExitStack()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if not self._users:
                self._installed.enter_context(self._context())
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    self._installed.close()


@dataclass(frozen=True)
class Target:
    """Something whose calls can be intercepted, or a model inside of which they are.

    `key` is what interceptors know it by, and `contexts` install them.
    """

    key: Hashable
    name: str
    contexts: tuple[Context, ...]
    held: Any  # keeps alive what the key is an id of
    compiled: bool = False  # any framework may have compiled it: see `RECOMPILE`


@dataclass(frozen=True)
class InterceptedCall:
    """A call of a target: `original(*args, **kwargs)` is what it would give.

    What is `offered` beside the arguments is for replacements with a parameter of that
    name.
    """

    target: Hashable  # its key
    name: str  # of what was called: a target may have several
    original: Callable[..., Any]
    args: Sequence[Any]
    kwargs: dict[str, Any]
    signature: inspect.Signature | None = None
    offered: dict[str, Any] | None = None


class Replacement(Protocol):
    """What stands in the place of a target."""

    def answer(self, call: InterceptedCall) -> Any:
        """Answer a call that has arrays among its arguments."""
        ...

    def left_alone(self, inside: str) -> None:
        """Take note of a call inside of a function with a rule, which decides."""
        ...


@dataclass(eq=False)
class Scope:
    """One `with`: what stands in the place of each target, and what was called."""

    replacements: Mapping[Hashable, Replacement]
    model: Any = None  # calls inside of this one only
    contexts: tuple[Context, ...] = ()  # that are entered with it
    called: Counter[Hashable] = field(default_factory=Counter)  # targets, by their keys
    unreachable: dict[Hashable, Any] = field(default_factory=dict)  # and where
    without_arrays: dict[Hashable, Any] = field(default_factory=dict)  # and where
    seen: Counter[str] = field(default_factory=Counter)  # all that interceptors saw
    number: int = field(default_factory=count(1).__next__)
    interceptors: ExitStack = field(default_factory=ExitStack)
    ended: bool = False


_open: ContextVar[tuple[Scope, ...]] = ContextVar("open", default=())  # oldest first
_entered: ContextVar[tuple[Scope, ...]] = ContextVar("entered", default=())
_suspended: ContextVar[int] = ContextVar("suspended", default=0)  # up to this number
_running: ContextVar[frozenset[Hashable]] = ContextVar("running", default=frozenset())
_rule: ContextVar[str | None] = ContextVar("rule", default=None)


def begin(scope: Scope) -> None:
    """Let a scope hold; one of a model waits until that is called."""
    _open.set((*open_scopes(), scope))


def end(scope: Scope) -> None:
    """Let a scope hold no more, also if others were opened after it and still hold."""
    scope.ended = True
    _open.set(open_scopes())


def open_scopes() -> tuple[Scope, ...]:
    """The scopes that were opened in this context, and have not ended."""
    # One may have ended elsewhere: in a generator, or a task with a context of its own.
    return tuple(scope for scope in _open.get() if not scope.ended)


def _active() -> list[Scope]:
    """The scopes that hold here and now, the innermost last."""
    suspended, entered = _suspended.get(), _entered.get()
    return [
        scope
        for scope in _open.get()
        if not scope.ended
        and scope.number > suspended
        and (scope.model is None or scope in entered)
    ]


def cache_key() -> tuple[int, ...]:
    """The scopes that hold or wait here: what is traced in them is not for others."""
    suspended = _suspended.get()
    waiting = [s.number for s in open_scopes() if s.number > suspended]
    return (*waiting, *(scope.number for scope in _active()))


@contextmanager
def _given(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    """For the time of one call, which ends before its caller does."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def inside_model(*models: Any) -> Iterator[None]:
    """While one of these models is called: let the scopes that wait for it hold."""
    waiting = [scope for scope in _open.get() if scope.model is not None]
    due = [s for s in waiting if any(s.model is model for model in models)]
    with _given(_entered, (*_entered.get(), *due)) if due else nullcontext():
        yield


def inside_replacement() -> AbstractContextManager[None]:
    """While code of a replacement runs: nothing that is open is for it."""
    return _given(_suspended, max((s.number for s in _open.get()), default=0))


def inside_target(key: Hashable) -> AbstractContextManager[None]:
    """While the target itself runs, which its replacement has called."""
    return _given(_running, _running.get() | {key})


def is_intercepted(key: Hashable) -> bool:
    """Whether a call of a target is to be intercepted here and now."""
    if key in _running.get():
        return False
    return any(key in scope.replacements for scope in _active())


def first_intercepted(keys: Sequence[Hashable]) -> Hashable:
    """The first of several keys whose calls are intercepted; else the first one."""
    return next(filter(is_intercepted, keys), keys[0])


def is_called_by(codes: Container[CodeType]) -> bool:
    """Whether one of these functions, by its code, is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code in codes:
            return True
        frame = frame.f_back
    return False


def note_call(name: str) -> None:
    """Something was called, which may be what the user meant."""
    for scope in _active():
        scope.seen[name] += 1


def note_unreachable(key: Hashable) -> None:
    """A target has run where its call could not be intercepted."""
    for scope in _active() if is_intercepted(key) and _rule.get() is None else ():
        if key in scope.replacements:
            scope.unreachable[key] = place_here()


def call_intercepted(
    key: Hashable,
    name: str,
    original: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    signature: inspect.Signature | None = None,
    offered: dict[str, Any] | None = None,
    has_rule: bool = False,
) -> Any:
    """Call something, or what the innermost scope has in its place (`Replacement`).

    If what is called has a rule, no gradient goes through what it calls itself.
    """
    note_call(name)
    if not is_intercepted(key):
        with _given(_rule, name) if has_rule else nullcontext():
            return original(*args, **kwargs)
    scope = next(s for s in reversed(_active()) if key in s.replacements)
    replacement, rule = scope.replacements[key], _rule.get()
    if rule is not None:
        replacement.left_alone(rule)
        return original(*args, **kwargs)
    if not any(map(is_array, trees.leaves((list(args), kwargs)))):
        scope.without_arrays[key] = place_here()
        return original(*args, **kwargs)
    scope.called[key] += 1
    call = InterceptedCall(key, name, original, args, kwargs, signature, offered)
    return replacement.answer(call)


def function_target(fn: Any) -> Target | None:
    """A function that was written in Python; None if it was not."""
    if not isinstance(fn, FunctionType):
        return None
    context = _functions.setdefault(id(fn), ProcessWide(partial(_patched, fn)))
    return Target(("function", id(fn)), name_of(fn), (context,), fn, compiled=True)


# One for each function; they hold it, so that it keeps its id.
_functions: WeakValueDictionary[int, ProcessWide] = WeakValueDictionary()


def _patched(fn: FunctionType) -> AbstractContextManager[None]:
    key, name, signature = ("function", id(fn)), name_of(fn), signature_of(fn)

    def call(original: Any, args: Any, kwargs: Any) -> Any:
        return call_intercepted(key, name, converted(original), args, kwargs, signature)

    return patched_function(fn, call)


def parts() -> list[Any]:
    """The part `intercept` of each framework that somebody has imported."""
    known = [f for f in FRAMEWORKS.values() if f.is_imported and f.has("intercept")]
    found = [framework.intercept for framework in known]
    if "keras" not in sys.modules:
        return found
    from .keras import intercept

    return [intercept, *found]  # its layers may be modules of a framework's


def converted(fn: Any) -> Any:
    """A function as the frameworks want to run it, which do not look into our code."""
    for part in parts():
        fn = part.converted(fn)
    return fn


def not_interceptable(given: Any, why: str) -> GradsmithError:
    """The error for what can't be a target."""
    known = "; ".join(part.TARGETS for part in parts())
    return GradsmithError(
        f"{given!r} can't be overridden: {why}\n"
        f"  expected: a Python function; a Gradsmith operation; {known}\n"
        "  what to do: override the function or layer that calls it; a framework must "
        "be imported first"
    )
