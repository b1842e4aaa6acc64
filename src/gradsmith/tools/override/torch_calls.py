"""How PyTorch's functions are called: from Python into others, and in place."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import lru_cache
from inspect import Parameter
from types import FunctionType
from typing import Any

import torch

from ...operations.info import signature_of

# What a function written in Python asks, whether a mode is to be called in its place
_QUESTIONS = (
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
)


@lru_cache(maxsize=1024)
def bare_of(fn: Any) -> Callable[..., Any] | None:
    """A function as it would run if it did not ask for modes; those that it calls do.

    None for what is not written in Python.
    """
    if not isinstance(fn, FunctionType):
        return None
    told = {name: _no for name in _QUESTIONS if name in fn.__globals__}
    if not told:
        return None
    names = {**fn.__globals__, **told}
    bare = FunctionType(
        fn.__code__, names, fn.__name__, fn.__defaults__, fn.__closure__
    )
    bare.__kwdefaults__ = fn.__kwdefaults__
    return bare


def signature_for(fn: Any, args: Any, kwargs: Any) -> inspect.Signature | None:
    """What a function is called with; one in C by the schema that fits this call."""
    own = signature_of(_dispatched(fn))
    fitting = (s for s in _schemas(fn.__name__) if _fits(s, args, kwargs))
    return own or next(fitting, None)


def _dispatched(fn: Any) -> Any:
    """F.max_pool1d calls one of two functions, with the same arguments."""
    known = inspect.getclosurevars(fn).nonlocals if isinstance(fn, FunctionType) else {}
    return known.get("if_false", fn)


def _fits(signature: inspect.Signature, args: Any, kwargs: Any) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


@lru_cache(maxsize=1024)
def _schemas(name: str) -> list[inspect.Signature]:
    name = f"aten::{name.partition('.')[0].removesuffix('_')}"
    found = torch._C._jit_get_schemas_for_operator(name)
    return [inspect.Signature([*_parameters(schema)]) for schema in found]


def _parameters(schema: Any) -> Iterator[Parameter]:
    for arg in schema.arguments:
        name = "input" if arg.name == "self" else arg.name
        kind = (
            Parameter.KEYWORD_ONLY
            if arg.kwarg_only
            else Parameter.POSITIONAL_OR_KEYWORD
        )
        default = arg.default_value if arg.has_default_value() else Parameter.empty
        if isinstance(default, list) and len(default) == 1:
            default = default[0]  # padding=[0], which everybody writes as 0
        yield Parameter(name, kind, default=default)


def _no(*args: Any) -> bool:
    return False


def is_inplace(name: str, kwargs: dict[str, Any], module: Any = None) -> bool:
    """Whether a call, by its name and arguments or as a module, changes its input.

    >>> is_inplace("F.relu_", {}), is_inplace("F.relu", {"inplace": True})
    (True, True)
    """
    by_name = name.endswith("_") and not name.endswith("__")
    return by_name or kwargs.get("inplace", getattr(module, "inplace", False)) is True


def of_copy(original: Callable[..., Any]) -> Callable[..., Any]:
    """f(x) of f_(x), which changes x: f_ of a copy."""

    def outplace(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return original(x.clone(), *args, **kwargs)

    return outplace
