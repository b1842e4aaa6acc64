"""PyTorch: functions by a function mode, modules by their calls."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any

import torch

from ....core.patching import patched
from ..._intercept import (
    ProcessWide,
    Target,
    first_intercepted,
    inside_model,
    not_interceptable,
)
from ..private import uncompiled
from .functions import FunctionMode, OperationMode, call_replaced, family_of, title_of

TARGETS = "a function of PyTorch's, or a module, the class or an instance"


def target_of(given: Any) -> Target | None:
    """A module, its class, or a function of PyTorch's."""
    if inspect.isclass(given):
        if issubclass(given, torch.nn.Module):
            return _target(_module_key(given), given.__name__, given)
        if issubclass(given, torch.autograd.Function):
            why = "calls of its `apply` can't be intercepted"
            raise not_interceptable(given, why)
        return None
    if isinstance(given, torch.jit.ScriptModule):
        why = "it is TorchScript, which does not run in Python"
        raise not_interceptable(given, why)
    if isinstance(given, torch.nn.Module):
        return _target(_module_key(given), type(given).__name__, given)
    family = family_of(given)
    if family is None:
        return None
    return _target(("torch", family), title_of(given), given)


def _target(key: Hashable, name: str, given: Any) -> Target:
    contexts = (_modules, *RECOMPILE, FunctionMode, OperationMode)
    return Target(key, name, contexts, given)


def model_of(model: Any) -> Target | None:
    if not isinstance(model, torch.nn.Module):
        return None
    return Target(_module_key(model), type(model).__name__, (_modules,), model)


def _module_key(module: Any) -> Hashable:
    return ("module", id(module))


@ProcessWide
@contextmanager
def _modules() -> Iterator[None]:
    """Calls of modules."""
    theirs = torch.nn.Module.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        original, name = MethodType(theirs, self), type(self).__name__
        inner = uncompiled(self)
        with inside_model(self, inner):
            classes = (*type(self).__mro__, *type(inner).__mro__)
            keys = [_module_key(each) for each in (self, inner, *classes)]
            key = first_intercepted(keys)
            return call_replaced(key, name, original, args, kwargs, self)

    with patched(torch.nn.Module, __call__=call):
        yield


@ProcessWide
def _eagerly() -> Any:
    """Compiled functions run as they are written: what is compiled is out of reach."""
    return torch.compiler.set_stance("force_eager")


RECOMPILE = (_eagerly,)
