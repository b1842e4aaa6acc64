"""What is to be audited: whose it is, what it takes, which function is the truth."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from ...core.arrays import FRAMEWORKS, title_of
from ...core.errors import GradsmithError
from ...operations.info import of_operation, signature_of
from .._inputs import framework_for, info_of
from .references import Special, described, reference_for

# Of modules, as of options
_ATTRIBUTES = ("approximate", "negative_slope", "alpha", "beta", "threshold")


@dataclass(frozen=True)
class Target:
    """An operation with its framework, its arguments and its true function."""

    op: Any
    call: Callable[..., Any]
    framework: str
    name: str
    arguments: tuple[str, ...]
    reference: Callable[..., Any]
    surrogate: str | None = None
    notes: tuple[str, ...] = ()
    native: bool = False  # the framework's own, whose true function was found by name

    def having(self, **changes: Any) -> Target:
        return replace(self, **changes)


def target_of(
    op: Any, *, framework: str | None, reference: Any, names: tuple[str, ...]
) -> Target:
    """The target; `names` are those of the arguments that have a domain."""
    plain, options = _without_options(op)
    own = framework_for(plain, (), framework, caller="audit()")
    if framework is None and own == "numpy" and of_operation(plain) is None:
        own = _framework_used(plain)
    if reference is not None and not callable(reference):
        raise GradsmithError(f"reference={reference!r} is not a function")
    info = info_of(plain, own)
    target = Target(op, _call(op, plain, info), own, _short(info.name), (), op)
    target = target.having(surrogate=info.surrogate)
    if reference is None and own != "numpy" and of_operation(plain) is None:
        reference = _by_name(plain, info.name, own, options)
        note = f"the true function is found by its name: {described(reference)}"
        target = target.having(notes=(note,), native=True)
    true = op if reference is None else reference
    arguments = _arguments(plain, options, true, own)
    if len(names) >= len(arguments):
        arguments = names  # as the caller calls them
    return target.having(reference=true, arguments=arguments)


def _call(op: Any, plain: Any, info: Any) -> Any:
    return info.call if op is plain else op


def _without_options(op: Any) -> tuple[Any, dict[str, Any]]:
    """What a partial is made of."""
    options: dict[str, Any] = {}
    while isinstance(op, partial):
        options, op = {**op.keywords, **options}, op.func
    return op, options


def _short(name: str) -> str:
    """A name without what a framework puts around it inside."""
    return name.removeprefix("special_").removeprefix("linalg_").removesuffix("_v2")


def _framework_used(fn: Any) -> str:
    """The framework that a function names, if it is one and its name is not NumPy's."""
    code = getattr(inspect.unwrap(fn), "__code__", None)
    if code is None:
        return "numpy"
    values = {**getattr(fn, "__globals__", {}), **_nonlocals(fn)}
    roots = {_root(values.get(name)) for name in _names_in(code)}
    rows = [row for row in FRAMEWORKS.values() if row.is_imported]
    used = [row.name for row in rows if not roots.isdisjoint(row.roots)]
    return used[0] if len(used) == 1 else "numpy"


def _names_in(code: Any) -> set[str]:
    inner = [c for c in code.co_consts if inspect.iscode(c)]
    return {*code.co_names, *code.co_freevars}.union(*map(_names_in, inner))


def _nonlocals(fn: Any) -> dict[str, Any]:
    try:
        return dict(inspect.getclosurevars(fn).nonlocals)
    except (TypeError, ValueError):
        return {}


def _root(x: Any) -> str:
    name = x.__name__ if inspect.ismodule(x) else getattr(x, "__module__", None) or ""
    return str(name).partition(".")[0]


def _by_name(op: Any, name: str, framework: str, options: dict[str, Any]) -> Any:
    found = {a: getattr(op, a) for a in _ATTRIBUTES if not inspect.isroutine(op)
             and hasattr(op, a)}  # fmt: skip
    roots = FRAMEWORKS[framework].roots
    theirs = _root(op) in roots or _root(type(op)) in roots
    reference = reference_for(name, framework, {**found, **options}) if theirs else None
    if reference is None:
        raise GradsmithError(
            f"audit({_short(name)}): {title_of(framework)} computes it, and its "
            "true function is not known by its name\n  what to do: pass the true "
            "function, written with NumPy or scipy.special, such as "
            "reference=lambda x: np.log1p(np.exp(x))"
        )
    return reference


def _arguments(op: Any, options: Any, true: Any, framework: str) -> tuple[str, ...]:
    """The names of the arguments: those that must be given."""
    if isinstance(op, np.ufunc):
        return _numbered(op.nin)
    if framework != "numpy" and of_operation(op) is None:
        op, options = _without_options(true)
        if isinstance(op, np.ufunc):
            return _numbered(op.nin)
    if isinstance(op, Special):
        return _special_arguments(op)
    signature = signature_of(op)
    if signature is None:
        return ("x",)
    kinds = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    taken = [p for p in signature.parameters.values() if p.kind in kinds]
    must = [p.name for p in taken if p.default is p.empty and p.name not in options]
    return tuple(must) or tuple(p.name for p in taken[:1]) or ("x",)


def _special_arguments(fn: Special) -> tuple[str, ...]:
    from scipy import special

    own = getattr(special, fn.name, None)
    return _numbered(own.nin) if isinstance(own, np.ufunc) else ("x",)


def _numbered(n: int) -> tuple[str, ...]:
    return ("x",) if n == 1 else tuple(f"x{i + 1}" for i in range(n))
