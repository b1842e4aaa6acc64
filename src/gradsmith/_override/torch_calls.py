"""How PyTorch's functions are called: from Python into others, and in place."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import FunctionType
from typing import Any

import torch

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
