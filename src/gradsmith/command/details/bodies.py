"""The body of an operation without its rule, for autodiff to differentiate."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import MethodType, SimpleNamespace
from typing import Any

from ...operations.info import of_operation

Body = Callable[..., Any]


def body_of(call: Any) -> Body | None:
    """What computes the outputs of an operation, or None if that is not known.

    >>> from gradsmith import custom_gradient
    >>> @custom_gradient
    ... def square(x):
    ...     return x * x, lambda dy: 2 * x * dy
    >>> body_of(square)(3.0)
    9.0
    """
    if of_operation(call) is not None:
        return _of_ours(call)
    owner = getattr(call, "__self__", None)
    if getattr(call, "__name__", "") == "apply" and inspect.isclass(owner):
        return _of_function(owner)
    kind = type(call).__name__
    if kind in ("custom_vjp", "custom_jvp"):
        return call.fun
    if kind == "CustomOpDef":
        return call._init_fn
    if "custom_gradient" in type(call).__module__ and hasattr(call, "__wrapped__"):
        return _without_rule(call.__wrapped__)
    return None


def _of_ours(call: Any) -> Body | None:
    op: Any = call.__func__ if isinstance(call, MethodType) else call
    op = op.original or op
    if op.hosted:
        return None
    body = _without_rule(op.fn) if op.closure else op.fn
    return MethodType(body, call.__self__) if isinstance(call, MethodType) else body


def _without_rule(fn: Body) -> Body:
    """Of a function in closure form: what it returns but the gradient function."""

    def body(*args: Any, **kwargs: Any) -> Any:
        *ys, _ = fn(*args, **kwargs)
        return ys[0] if len(ys) == 1 else ys

    return body


def _of_function(cls: Any) -> Body:
    """PyTorch's: with a context that keeps nothing, if `forward` takes one."""
    base = next(c for c in cls.__mro__ if c.__module__.startswith("torch."))
    if cls.setup_context is not getattr(base, "setup_context", None):
        return cls.forward

    def nothing(*_: Any, **__: Any) -> None:
        return None

    names = "save_for_backward save_for_forward mark_dirty mark_non_differentiable"
    methods = dict.fromkeys([*names.split(), "set_materialize_grads"], nothing)
    return lambda *args: cls.forward(SimpleNamespace(**methods), *args)
