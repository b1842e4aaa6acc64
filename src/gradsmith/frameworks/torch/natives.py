"""PyTorch's own custom gradients: `autograd.Function`, `custom_op`, and modules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch.autograd import Function
from torch.func import functional_call

from ...core.patching import patched
from ...operations.info import Around, OperationInfo, signature_of
from .._natives import by_tree, info_of_module, miscounted, named_arguments
from ..keras import natives as keras
from .private import (
    CUSTOM_OP_FUNCTIONS,
    CustomOpDef,
    custom_op_of,
    custom_op_with,
    is_operator,
    parts_of_custom_op,
    reparametrized,
)

axis = "dim"
sums_gradients = True
functions = ("forward", "backward", "jvp", "setup_context", *CUSTOM_OP_FUNCTIONS)

# The methods of a Function that return gradients or tangents.
_RULES = ("backward", "vjp", "jvp")


def info_of(op: Any) -> OperationInfo | None:
    """What is known of an `autograd.Function`, a `custom_op` or a module."""
    owner = getattr(op, "__self__", None)
    if getattr(op, "__name__", "") == "apply" and inspect.isclass(owner):
        op = owner
    if inspect.isclass(op):
        return _of_function(op) if issubclass(op, Function) else None
    if is_operator(op):
        op = custom_op_of(op)
    if isinstance(op, CustomOpDef):
        return _of_custom_op(op)
    if not isinstance(op, torch.nn.Module):
        return None
    return keras.info_of(op, "torch") or _of_module(op)


# --- autograd.Function ---------------------------------------------------------------


def _of_function(cls: Any) -> OperationInfo:
    if cls.forward is Function.forward:
        return OperationInfo(cls.__name__, cls.apply, None, None, "it has no forward")
    return OperationInfo(
        cls.__name__,
        cls.apply,
        _forward_signature(cls),
        lambda around: _altered_function(cls, around),
        own_forward=cls.jvp is not Function.jvp,
        module=cls.__module__,
        body=_body_of(cls),
        rule=cls.backward,
    )


def _body_of(cls: Any) -> Any:
    """`forward`, with a context that keeps nothing if it takes one."""
    if cls.setup_context is not Function.setup_context:
        return cls.forward

    def nothing(*_: Any, **__: Any) -> None:
        return None

    names = "save_for_backward save_for_forward mark_dirty mark_non_differentiable"
    methods = dict.fromkeys([*names.split(), "set_materialize_grads"], nothing)
    return lambda *args: cls.forward(SimpleNamespace(**methods), *args)


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


def _of_custom_op(op: Any) -> OperationInfo:
    name, body, rule = parts_of_custom_op(op)

    @contextmanager
    def altered(around: Around) -> Iterator[Any]:
        # It is registered by its name for good, so there can be no copy.
        with custom_op_with(op, around(rule)):
            yield op

    return OperationInfo(
        name,
        op,
        signature_of(body),
        None if rule is None else altered,
        "it has no rule: give it one with register_autograd" if rule is None else "",
        module=body.__module__,
        body=body,
        rule=rule,
    )


# --- modules, whose parameters are arguments by name ---------------------------------


def _of_module(module: torch.nn.Module) -> OperationInfo:
    call = WithParameters(module)
    return info_of_module(module, call, module.forward, call.parameters)


class WithParameters:
    """A module as a function of its arguments and, by name, of its parameters.

    What has no gradient (buffers, frozen parameters) takes the precision of the rest,
    and is a copy: a module in training changes it.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module
        self.forward = type(module).forward
        named = dict(module.named_parameters())
        self.parameters = {n: x.detach() for n, x in named.items() if x.requires_grad}
        self._rest = {**named, **dict(module.named_buffers())}
        for name in self.parameters:
            del self._rest[name]
        self.latest: dict[str, Any] = {}  # parameters and buffers of the last call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = {n: kwargs.pop(n) for n in self.parameters if n in kwargs}
        dtype = _dtype_of([*given.values(), *args])
        rest = {n: _copy(x, dtype) for n, x in self._rest.items()}
        self.latest = {**rest, **given}
        return functional_call(self.module, self.latest, args, kwargs)


def parameters_of(fn: Any) -> Callable[[], AbstractContextManager[Any]]:
    """A scope in which the module has the parameters of its last call again.

    A rule that runs the module once more, as that of a reversible block, needs it.
    """
    call = getattr(fn, "call", None)
    if not isinstance(call, WithParameters):
        return nullcontext
    return partial(reparametrized, call.module, call.latest)


def _dtype_of(arrays: list[Any]) -> torch.dtype | None:
    found = (x.dtype for x in arrays if isinstance(x, torch.Tensor))
    return next((dtype for dtype in found if dtype.is_floating_point), None)


def _copy(x: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    x = x.detach().clone()
    return x.to(dtype) if dtype and x.is_floating_point() else x


# --- what a rule returned ------------------------------------------------------------


def gradients_in(
    info: OperationInfo, args: Any, kwargs: Any, returned: Any
) -> Iterator[tuple[str, Any]]:
    """`backward(ctx, *dys)`: one for each argument of forward; Nones may follow."""
    arguments = named_arguments(info, args, kwargs)
    gradients = list(returned) if isinstance(returned, (tuple, list)) else [returned]
    rest = gradients[len(arguments) :]
    if len(gradients) < len(arguments) or any(g is not None for g in rest):
        raise miscounted(arguments, returned)
    yield from by_tree(arguments, gradients)
