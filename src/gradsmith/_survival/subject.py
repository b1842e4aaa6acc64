"""An operation under test: how to call it, and how to mark its rule.

A rule may well equal the true derivative, so its result doesn't show whether it was
used. Hence the mark: a copy of the operation whose rule's answers are multiplied by a
factor. With the factor 0, all that comes from the rule vanishes, to every order; what
is left did not come from it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial, wraps
from types import MethodType
from typing import Any

from .. import _tree
from .._operation import Operation

Scale = Callable[[Any, float], Any]
Mark = Callable[[float], AbstractContextManager[Callable[..., Any]]]


@dataclass(frozen=True)
class Subject:
    """What is known of an operation.

    `marked(factor)` is the context in which its marked copy, which it gives, may be
    called; without it `unmarked` says why there is none.
    """

    name: str
    call: Callable[..., Any]
    signature: inspect.Signature | None
    marked: Mark | None
    unmarked: str = ""
    own_forward: bool = False  # it has a forward rule beside the reverse one


def of_operation(op: Any) -> Subject | None:
    """An operation of ours, or a method that is one."""
    operation = op.__func__ if isinstance(op, MethodType) else op
    if not isinstance(operation, Operation):
        return None

    def mark(factor: float) -> Any:
        marked = operation.altered(partial(scaled, factor=factor))
        method = isinstance(op, MethodType)
        return nullcontext(MethodType(marked, op.__self__) if method else marked)

    both = operation.closure or operation.vjp_rule is not None
    return Subject(
        operation.name,
        op,
        signature_of(op),
        mark,
        own_forward=both and operation.jvp_rule is not None,
    )


def of_function(fn: Callable[..., Any]) -> Subject:
    """Any other function: its rule, if it has one, is somewhere inside of it."""
    return Subject(
        name_of(fn),
        fn,
        signature_of(fn),
        None,
        "its rule can't be marked, since it is none of the operations that we know; "
        "its results are compared with the plain eager gradient and with differences",
    )


def name_of(fn: Any) -> str:
    return getattr(fn, "__name__", None) or type(fn).__name__


def signature_of(fn: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(fn)
    except (TypeError, ValueError):
        return None


def names_of(subject: Subject, args: Sequence[Any]) -> list[str]:
    """By which names positional arguments can be given; none if not all can."""
    if subject.signature is None:
        return []
    parameters = list(subject.signature.parameters.values())[: len(args)]
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    return names if len(names) == len(args) else []


# --- marking -------------------------------------------------------------------------


def scaled(
    rule: Callable[..., Any], factor: float, scale: Scale | None = None
) -> Callable[..., Any]:
    """A rule whose answers are multiplied by a factor."""
    scale = scale or scale_tree

    @wraps(rule)
    def marked(*args: Any, **kwargs: Any) -> Any:
        return scale(rule(*args, **kwargs), factor)

    signature = signature_of(rule)  # some read it without following __wrapped__
    if signature is not None:
        marked.__signature__ = signature  # type: ignore[attr-defined]
    return marked


def scale_tree(gradients: Any, factor: float) -> Any:
    """Multiply what is a number or an array of such; leave None and markers alone."""
    return _tree.map(lambda g: g * factor if is_floating(g) else g, gradients)


def is_floating(x: Any) -> bool:
    """Whether something is, or holds, real or complex floating numbers.

    >>> is_floating(1.0), is_floating(1), is_floating(None)
    (True, False, False)
    """
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return isinstance(x, (float, complex))
    # Each framework has its own dtypes; float0 is JAX's for "no gradient".
    return re.search(r"float[1-9]|complex", str(dtype)) is not None


@contextmanager
def replaced(obj: Any, **attributes: Any) -> Any:
    """Give an object other attributes for a while, also if an exception ends it."""
    missing = object()
    before = {name: vars(obj).get(name, missing) for name in attributes}
    try:
        for name, value in attributes.items():
            setattr(obj, name, value)
        yield
    finally:
        for name, value in before.items():
            if value is missing:
                delattr(obj, name)
            else:
                setattr(obj, name, value)
