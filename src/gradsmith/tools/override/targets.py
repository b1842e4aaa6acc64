"""Which part of a program a target is, and who can intercept its calls."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from types import MethodType
from typing import Any

from ...core.arrays import FRAMEWORKS
from ...core.hooks import CALL
from ...frameworks._intercept import (
    ProcessWide,
    Target,
    call_intercepted,
    function_target,
    not_interceptable,
    parts,
)
from ...operations.operation import Operation
from .._inputs import framework_of_native


def target_of(given: Any) -> Target:
    """What a key of the dict stands for; an error if its calls can't be intercepted."""
    finders = (_operation_target, *(part.target_of for part in parts()))
    for find in (*finders, function_target):
        found = find(given)
        if found is not None:
            return _recompiled(found) if found.compiled else found
    owner = framework_of_native(given)
    cannot = FRAMEWORKS[owner].cannot.get("intercept") if owner else None
    raise not_interceptable(given, cannot or "its calls can't be intercepted")


def model_of(model: Any) -> Target | None:
    """How to know when a model is called; None if one can't."""
    return next(filter(None, (part.model_of(model) for part in parts())), None)


def _recompiled(target: Target) -> Target:
    """A target with what lets Python run again that any framework has compiled."""
    contexts = [context for part in parts() for context in part.RECOMPILE]
    return replace(target, contexts=(*target.contexts, *contexts))


def _operation_target(given: Any) -> Target | None:
    """An operation of ours, or a method that is one."""
    if isinstance(given, MethodType):
        given = given.__func__
    if not isinstance(given, Operation):
        return None
    return Target(_key(given), given.name, (), given, compiled=True)


def _key(operation: Operation) -> Any:
    return ("operation", id(operation))


@ProcessWide
def operations() -> AbstractContextManager[None]:
    """Calls of operations, on arrays of whichever framework; any scope needs it."""
    return CALL.wrapped(_call)


def _call(proceed: Any, operation: Operation, args: Any, kwargs: Any) -> Any:
    return call_intercepted(
        _key(operation),
        operation.name,
        lambda *args, **kwargs: proceed(operation, args, kwargs),
        args,
        kwargs,
        operation.signature.full,
        has_rule=True,
    )
