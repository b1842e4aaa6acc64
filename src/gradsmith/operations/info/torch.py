"""PyTorch's own operations."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._library import custom_ops
from torch.autograd import Function

from ...core.patching import patched
from . import torch_module
from .info import Around, Subject, signature_of

# The methods of a Function that answer with gradients or tangents.
_RULES = ("backward", "vjp", "jvp")


def subject_of(op: Any) -> Subject | None:
    """What is known of an `autograd.Function`, a `custom_op` or a module."""
    owner = getattr(op, "__self__", None)
    if getattr(op, "__name__", "") == "apply" and inspect.isclass(owner):
        op = owner
    if inspect.isclass(op):
        return _of_function(op) if issubclass(op, Function) else None
    if isinstance(op, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        op = _definition(op)
    if isinstance(op, custom_ops.CustomOpDef):
        return _of_custom_op(op)
    return torch_module.subject_of(op) if isinstance(op, torch.nn.Module) else None


# --- autograd.Function ---------------------------------------------------------------


def _of_function(cls: Any) -> Subject:
    return Subject(
        cls.__name__,
        cls.apply,
        _forward_signature(cls),
        lambda around: _altered_function(cls, around),
        own_forward=cls.jvp is not Function.jvp,
        module=cls.__module__,
    )


def _forward_signature(cls: Any) -> inspect.Signature | None:
    signature = signature_of(cls.forward)
    if signature is None or cls.setup_context is not Function.setup_context:
        return signature
    return signature.replace(parameters=[*signature.parameters.values()][1:])  # no ctx


@contextmanager
def _altered_function(cls: Any, around: Around) -> Iterator[Any]:
    rules = {
        name: staticmethod(around(getattr(cls, name)))
        for name in _RULES
        if getattr(cls, name) is not getattr(Function, name)
    }
    if cls.vmap is Function.vmap:
        namespace = {**rules, "__module__": cls.__module__}
        yield type(cls)(cls.__name__, (cls,), namespace).apply
        return
    with patched(cls, **rules):  # a vmap of its own applies the class by its name
        yield cls.apply


# --- library.custom_op ---------------------------------------------------------------


def _definition(op: Any) -> Any:
    """The custom_op behind `torch.ops.library.name`, if there is one."""
    name = getattr(op, "_qualified_op_name", None) or op.name()
    return custom_ops.OPDEFS.get(name)


def _of_custom_op(op: Any) -> Subject:
    signature, module = signature_of(op._init_fn), op._init_fn.__module__
    if op._backward_fn is None:
        why = "it has no rule: give it one with register_autograd"
        return Subject(op._qualname, op, signature, None, why, module=module)
    return Subject(
        op._qualname,
        op,
        signature,
        lambda around: _altered_custom_op(op, around),
        module=module,
    )


@contextmanager
def _altered_custom_op(op: Any, around: Around) -> Iterator[Any]:
    # It is registered by its name for good, so there can be no copy.
    with patched(op, _backward_fn=around(op._backward_fn)):
        yield op
