"""What is known of an operation: how to call it, how to alter its rule.

It is one of ours, a framework's own (the part `natives` of a framework recognises it),
or any function.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from types import MethodType
from typing import Any

from .operation import Operation

# From a rule (what returns gradients or tangents) to the one in its place.
Around = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True)
class OperationInfo:
    """What is known of an operation.

    `altered(around)` is the context in which a copy with other rules, which it gives,
    may be called; without it `unaltered` says why there is none. `body` computes the
    outputs without the rule, so that autodiff differentiates it; None if it is unknown.
    """

    name: str
    call: Callable[..., Any]
    signature: inspect.Signature | None
    altered: Callable[[Around], AbstractContextManager[Callable[..., Any]]] | None
    unaltered: str = ""
    own_forward: bool = False  # it has a forward rule beside the reverse one
    surrogate: str | None = None  # the rule is not the derivative on purpose
    linear: bool = True  # the rule is linear in the upstream gradient
    module: str | None = None  # where a framework's own operation is defined
    captured: dict[str, Any] | None = None  # arrays inside, which it takes by name
    reverse: bool = True  # the rule returns gradients, not tangents
    body: Callable[..., Any] | None = None
    rule: Callable[..., Any] | None = None  # where the user wrote the rule


def of_operation(op: Any) -> OperationInfo | None:
    """An operation of ours, or a method that is one."""
    operation = op.__func__ if isinstance(op, MethodType) else op
    if not isinstance(operation, Operation):
        return None

    def altered(around: Around) -> Any:
        copy = operation.altered(around)
        method = isinstance(op, MethodType)
        return nullcontext(MethodType(copy, op.__self__) if method else copy)

    both = operation.closure or operation.vjp_rule is not None
    return OperationInfo(
        operation.name,
        op,
        signature_of(op),
        altered,
        own_forward=both and operation.jvp_rule is not None,
        surrogate=operation.surrogate,
        linear=operation.linear,
        body=_body_of(op, operation.original or operation),
        rule=operation.vjp_rule or operation.jvp_rule or operation.fn,
    )


def _body_of(op: Any, operation: Any) -> Callable[..., Any] | None:
    if operation.hosted:
        return None
    body = without_rule(operation.fn) if operation.closure else operation.fn
    return MethodType(body, op.__self__) if isinstance(op, MethodType) else body


def without_rule(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Of a function in closure form: all that it returns but the gradient function."""

    def body(*args: Any, **kwargs: Any) -> Any:
        *ys, _ = fn(*args, **kwargs)
        return ys[0] if len(ys) == 1 else ys

    return body


def of_function(fn: Callable[..., Any]) -> OperationInfo:
    """Any other function: its rule, if it has one, is somewhere inside of it."""
    return OperationInfo(
        name_of(fn),
        fn,
        signature_of(fn),
        None,
        "its rule can't be silenced, since Gradsmith does not know its kind; "
        "its results are compared with the eager gradient and with finite differences",
    )


def name_of(fn: Any) -> str:
    return getattr(fn, "__name__", None) or type(fn).__name__


def signature_of(fn: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(fn)
    except (AttributeError, TypeError, ValueError):  # the first from compilers
        return None


def names_of(info: OperationInfo, args: Sequence[Any]) -> list[str]:
    """By which names positional arguments can be given; none if not all can."""
    if info.signature is None:
        return []
    parameters = list(info.signature.parameters.values())[: len(args)]
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    return names if len(names) == len(args) else []


def positional(info: OperationInfo, args: Sequence[Any]) -> list[str]:
    """What positional arguments are called; by their number if they have no names."""
    names: list[str] = []
    if info.signature is not None:
        parameters = info.signature.parameters.values()
        kinds = (
            inspect.Parameter.POSITIONAL_ONLY,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
        )
        names = [p.name for p in parameters if p.kind in kinds]
    return names + [f"argument {i}" for i in range(len(names), len(args))]


def is_floating(x: Any) -> bool:
    """Whether something is, or holds, real or complex floating numbers.

    >>> is_floating(1.0), is_floating(1), is_floating(None)
    (True, False, False)
    """
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return isinstance(x, (float, complex))
    # Each framework has its own dtypes; float0 means "no gradient".
    return re.search(r"float[1-9]|complex", str(dtype)) is not None
