"""JAX: functions with rules of their own, NumPy's functions, and primitives.

What was traced before is traced anew in a scope, since the numbers of the open scopes
are a part of the key by which JAX finds what it has compiled.
"""

# pyright: reportAttributeAccessIssue=false
# (where these names come from is not there when the code is checked)

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from threading import local
from types import FrameType, MethodType
from typing import Any

import jax
import jax.numpy as jnp
from jax._src import core
from jax._src.interpreters import ad, batching
from jax.extend.core import Primitive

from ...core.errors import GradsmithError
from ...core.patching import patched as attributes
from ...operations.info import name_of
from . import functions
from .replacement import replaced
from .scope import Scope, Target, is_due, opened_with, ruled_by, saw

_CLASSES = (jax.custom_jvp, jax.custom_vjp, jnp.ufunc)


def target_of(given: Any) -> Target | None:
    """A primitive, a compiled function, one with its own rule, or a ufunc."""
    hooks, anew = (_objects, _primitives), (_retraced,)
    if isinstance(given, Primitive):
        return Target(_key(given), given.name, anew, hooks, given, afresh=False)
    if isinstance(given, _CLASSES):
        return Target(_key(given), _name(given), anew, hooks, given, afresh=False)
    given = given.__wrapped__ if isinstance(given, type(_compiled())) else given
    found = functions.target_of(given)
    if found is None or given.__module__.partition(".")[0] != "jax":
        return found
    shared = (*found.shared, *hooks)
    return replace(found, contexts=anew, shared=shared, afresh=False)


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
    here = opened_with(_retraced)
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
    _thread.scopes = opened_with(_retraced)
    key = tuple(scope.number for scope in _thread.scopes)
    _scope()(key or None).__enter__()


AFRESH_IN_SCOPE = (_retraced,)


@contextmanager
def _objects() -> Iterator[None]:
    """Calls of objects of JAX's classes."""
    with (
        attributes(jax.custom_jvp, __call__=_calling(jax.custom_jvp)),
        attributes(jax.custom_vjp, __call__=_calling(jax.custom_vjp)),
        attributes(jnp.ufunc, __call__=_calling(jnp.ufunc)),
    ):
        yield


def _calling(cls: Any) -> Any:
    theirs = cls.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        original = MethodType(theirs, self)
        if is_due(_key(self)) or cls is jnp.ufunc:
            return replaced(_key(self), _name(self), original, args, kwargs)
        saw(_name(self))
        with ruled_by(_name(self)):
            return original(*args, **kwargs)

    return call


@contextmanager
def _primitives() -> Iterator[None]:
    """What is given to primitives by code that is being run or traced."""
    theirs = Primitive.bind

    def bind(self: Any, *args: Any, **params: Any) -> Any:
        if not is_due(_key(self)) or _in_rule():
            saw(self.name)
            return theirs(self, *args, **params)
        original = lambda *args: theirs(self, *args, **params)
        return replaced(_key(self), self.name, original, args, {}, offered=params)

    with attributes(Primitive, bind=bind):
        yield


_RULES = {
    fn.__code__
    for fn in (
        core.EvalTrace.process_primitive,
        ad.JVPTrace.process_primitive,
        ad.LinearizeTrace.process_primitive,
        batching.BatchTrace.process_primitive,
        inspect.unwrap(core.eval_jaxpr),
        *(getattr(ad, name) for name in dir(ad) if name.startswith("backward_pass")),
    )
}


def _in_rule() -> bool:
    """Whether it is JAX itself that calls: a rule of another primitive, or a trace."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code in _RULES:
            return True
        frame = frame.f_back
    return False
