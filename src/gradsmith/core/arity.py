"""What functions can be called with: rules are given what they take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from inspect import Parameter
from math import inf
from types import FunctionType
from typing import Any, NamedTuple

from .caches import remember

OPTIONS = ("needs", "variables")  # what a rule may be told beside its arguments
POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


class Arity(NamedTuple):
    """What a function can be called with; options of rules are not positional."""

    required: int
    maximum: float
    names: frozenset[str]
    any_name: bool
    needs: bool
    variables: bool
    requires_variables: bool

    def means_each(self, n: int) -> bool:
        """Whether n values are to come one by one, not all in one.

        A parameter with a default, as in `def grad(dy, x=x)`, is not meant for them.
        """
        meant = self.required == n or self.required > 1 or self.maximum == inf
        return meant and self.required <= n <= self.maximum


_known: dict[int, tuple[Any, Arity]] = {}  # by the identity of their code


def arity_of(fn: Callable[..., Any]) -> Arity:
    """What a function can be called with.

    >>> arity_of(lambda dz, dw, needs=None: 0).maximum
    2
    """
    # A closure is made anew in each call, its code is not. But what wraps other
    # functions has one code for all of them.
    if type(fn) is not FunctionType or hasattr(fn, "__wrapped__"):
        return _read(fn)
    code = fn.__code__
    found = _known.get(id(code))
    if found is None:
        found = remember(_known, id(code), (code, _read(fn)))
    return found[1]


def _read(fn: Callable[..., Any]) -> Arity:
    if type(fn) is FunctionType and not hasattr(fn, "__wrapped__"):
        return read_code(fn)
    parameters = signature_of(fn).parameters
    positional = [p for p in parameters.values() if p.kind in POSITIONAL]
    kinds = {p.kind for p in parameters.values()}
    return _arity(
        positional=[p.name for p in positional],
        optional=[p.name for p in parameters.values() if p.default is not p.empty],
        names=list(parameters),
        starred=Parameter.VAR_POSITIONAL in kinds,
        any_name=Parameter.VAR_KEYWORD in kinds,
    )


def read_code(fn: Any) -> Arity:
    """What a Python function can be called with, without `inspect`.

    So that a compiler that traces Python can follow it.
    """
    code = fn.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    positional = names[: code.co_argcount]
    optional = [*positional[len(positional) - len(fn.__defaults__ or ()) :]]
    if code.co_kwonlyargcount:
        optional += fn.__kwdefaults__ or ()
    return _arity(
        positional=positional,
        optional=optional,
        names=names,
        starred=bool(code.co_flags & inspect.CO_VARARGS),
        any_name=bool(code.co_flags & inspect.CO_VARKEYWORDS),
    )


def _arity(
    *,
    positional: Sequence[str],
    optional: Collection[str],
    names: Sequence[str],
    starred: bool,
    any_name: bool,
) -> Arity:
    counted = [name for name in positional if name not in OPTIONS]
    return Arity(
        required=len([name for name in counted if name not in optional]),
        maximum=inf if starred else len(counted),
        names=frozenset(names),
        any_name=any_name,
        needs="needs" in names,
        variables="variables" in names,
        requires_variables="variables" in names and "variables" not in optional,
    )


def signature_of(fn: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(fn)
    except (TypeError, ValueError):  # some C functions have none
        return inspect.signature(lambda *args, **kwargs: None)
