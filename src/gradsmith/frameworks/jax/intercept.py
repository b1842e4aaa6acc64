"""JAX: functions with rules of their own, NumPy's functions, and primitives.

What was traced before is traced anew in a scope, since the numbers of the open scopes
are a part of the key by which JAX finds what it has compiled.
"""

# pyright: reportAttributeAccessIssue=false
# (where these names come from is not there when the code is checked)

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from threading import local
from types import MethodType
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Primitive

from ...core.errors import GradsmithError
from ...core.patching import patched
from ...operations.info import name_of
from .._intercept import (
    ProcessWide,
    Scope,
    Target,
    call_intercepted,
    function_target,
    is_called_by,
    is_intercepted,
    note_call,
    open_scopes,
)
from .private import RULE_CALLERS

TARGETS = "a function of JAX's, or a primitive"
_CLASSES = (jax.custom_jvp, jax.custom_vjp, jnp.ufunc)


def target_of(given: Any) -> Target | None:
    """A primitive, a compiled function, one with its own rule, or a ufunc."""
    contexts = (_objects, _primitives, _retraced)
    if isinstance(given, Primitive):
        return Target(_key(given), given.name, contexts, given)
    if isinstance(given, _CLASSES):
        return Target(_key(given), _name(given), contexts, given)
    compiled = isinstance(given, type(_compiled()))
    given = given.__wrapped__ if compiled else given
    found = function_target(given)
    if found is not None and given.__module__.partition(".")[0] == "jax":
        return replace(found, contexts=(*found.contexts, *contexts), compiled=False)
    return found if compiled else None


def _key(target: Any) -> Any:
    return ("jax", id(target))


def _name(target: Any) -> str:
    return getattr(target, "__name__", None) or name_of(target.fun)


@cache
def _compiled() -> Any:
    return jax.jit(lambda x: x)


@cache
def _scope() -> Any:
    return jax.make_user_context()


class _Thread(local):
    """JAX knows of contexts by the thread, we by the task."""

    scopes: tuple[Scope, ...] = ()  # what JAX was told last


_thread = _Thread()


@contextmanager
def _retraced() -> Iterator[None]:
    """Nothing that was compiled outside is used inside, and the other way round."""
    here = _scopes()
    if any(not scope.ended and scope not in here for scope in _thread.scopes):
        raise GradsmithError(
            "another task of this thread has an override open, and JAX would mix up "
            "what is compiled in both\n  what to do: close a scope before `await`, or "
            "open each in a thread of its own: await asyncio.to_thread(changed, x)"
        )
    _follow()
    try:
        yield
    finally:
        _follow()


def _follow() -> None:
    """Let JAX find what was compiled in the scopes that are open now."""
    _thread.scopes = _scopes()
    key = tuple(scope.number for scope in _thread.scopes)
    _scope()(key or None).__enter__()


def _scopes() -> tuple[Scope, ...]:
    """The scopes that are open here and trace anew."""
    return tuple(scope for scope in open_scopes() if _retraced in scope.contexts)


RECOMPILE = (_retraced,)


@ProcessWide
@contextmanager
def _objects() -> Iterator[None]:
    """Calls of objects of JAX's classes."""
    with (
        patched(jax.custom_jvp, __call__=_calling(jax.custom_jvp)),
        patched(jax.custom_vjp, __call__=_calling(jax.custom_vjp)),
        patched(jnp.ufunc, __call__=_calling(jnp.ufunc)),
    ):
        yield


def _calling(cls: Any) -> Any:
    theirs = cls.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        original = MethodType(theirs, self)
        key, ruled = _key(self), cls is not jnp.ufunc
        return call_intercepted(
            key, _name(self), original, args, kwargs, has_rule=ruled
        )

    return call


@ProcessWide
@contextmanager
def _primitives() -> Iterator[None]:
    """What is given to primitives by code that is being run or traced."""
    theirs = Primitive.bind

    def bind(self: Any, *args: Any, **params: Any) -> Any:
        # JAX itself may call: a rule of another primitive, or a trace.
        if not is_intercepted(_key(self)) or is_called_by(RULE_CALLERS):
            note_call(self.name)
            return theirs(self, *args, **params)
        original = lambda *args: theirs(self, *args, **params)
        return call_intercepted(
            _key(self), self.name, original, args, {}, offered=params
        )

    with patched(Primitive, bind=bind):
        yield
