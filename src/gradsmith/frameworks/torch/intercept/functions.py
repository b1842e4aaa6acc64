"""Calls of PyTorch's functions: from Python, in place, and below Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import lru_cache
from inspect import Parameter
from types import FunctionType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ....core.errors import GradsmithError
from ....operations.info import signature_of
from ..._intercept import (
    call_intercepted,
    is_intercepted,
    note_call,
    note_unreachable,
)
from ..private import (
    DisableTorchFunction,
    TensorBase,
    TorchDispatchMode,
    running_node,
    schemas_of,
    uncompiled,
)

# One operation has many names: torch.relu, torch.relu_, x.relu(), F.relu, aten.relu.
_HOMES = (
    "torch.nn.functional",
    "torch.functional",
    "torch._C",
    "torch._tensor",
    "torch._ops",
)


def family_of(fn: Any) -> str | None:
    """The name that an operation has in all of its forms: `relu` of `x.relu_()`."""
    name, module = _name(fn), getattr(fn, "__module__", None)
    owner = getattr(fn, "__objclass__", None)
    theirs = owner is TensorBase or (
        module is not None and (module == "torch" or module.startswith(_HOMES))
    )
    if not (theirs and callable(fn) and name):
        return None
    return name if name.startswith("__") else name.removesuffix("_")


def title_of(fn: Any) -> str:
    home = getattr(fn, "__module__", None) or "torch.Tensor"
    short = {"torch.nn.functional": "F", "torch._C._nn": "F"}.get(home, home)
    return f"{short}.{_name(fn)}"


def _name(fn: Any) -> str:
    """`relu` also of an overload, aten.relu.default."""
    return getattr(fn, "__name__", "").partition(".")[0]


class FunctionMode(TorchFunctionMode):
    """Sees the calls of PyTorch's functions, methods and operators from Python."""

    def __init__(self) -> None:
        super().__init__()
        self.running: list[Any] = []  # functions written in Python, as they are called

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        family = family_of(func)
        if family is None:
            return self._call(func, args, kwargs)
        call = lambda *args, **kwargs: self._call(func, args, kwargs)
        return call_replaced(
            ("torch", family), title_of(func), call, args, kwargs, func
        )

    def _call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run a function; we are off in here, but one in Python calls others."""
        plain = _without_modes(func)
        if plain is None or func in self.running:
            return func(*args, **kwargs)
        self.running.append(func)
        try:
            with self:
                return plain(*args, **kwargs)
        finally:
            self.running.pop()


def call_replaced(
    key: Any, name: str, original: Any, args: Any, kwargs: Any, called: Any
) -> Any:
    """A call by what a scope wants in its place; the result may go into its input."""
    if not is_intercepted(key):
        note_call(name)
        return original(*args, **kwargs)
    module = called if isinstance(called, torch.nn.Module) else None
    called = uncompiled(module).forward if module is not None else called
    signature = _signature_for(called, args, kwargs)
    if kwargs.get("out") is not None:
        raise GradsmithError(
            f"{name} is called with out=, which has no gradient\n  what to do: omit "
            "out=, or override the function that calls it"
        )
    if not (args and _is_inplace(name, kwargs, module)):
        return call_intercepted(key, name, original, args, kwargs, signature)
    x, *rest = args
    copied = (x.clone(), *rest)
    y = call_intercepted(key, name, _of_copy(original), copied, kwargs, signature)
    return x.copy_(y)


# What a function written in Python asks, whether a mode is to be called in its place
_QUESTIONS = (
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
)


@lru_cache(maxsize=1024)
def _without_modes(fn: Any) -> Callable[..., Any] | None:
    """A function as it would run if it did not ask for modes; those that it calls do.

    None for what is not written in Python.
    """
    if not isinstance(fn, FunctionType):
        return None
    told = {name: _no for name in _QUESTIONS if name in fn.__globals__}
    if not told:
        return None
    names = {**fn.__globals__, **told}
    plain = FunctionType(
        fn.__code__, names, fn.__name__, fn.__defaults__, fn.__closure__
    )
    plain.__kwdefaults__ = fn.__kwdefaults__
    return plain


def _signature_for(fn: Any, args: Any, kwargs: Any) -> inspect.Signature | None:
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
    found = schemas_of(name)
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


def _is_inplace(name: str, kwargs: dict[str, Any], module: Any = None) -> bool:
    """Whether a call, by its name and arguments or as a module, changes its input.

    >>> _is_inplace("F.relu_", {}), _is_inplace("F.relu", {"inplace": True})
    (True, True)
    """
    by_name = name.endswith("_") and not name.endswith("__")
    return by_name or kwargs.get("inplace", getattr(module, "inplace", False)) is True


def _of_copy(original: Callable[..., Any]) -> Callable[..., Any]:
    """f(x) of f_(x), which changes x: f_ of a copy."""

    def outplace(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return original(x.clone(), *args, **kwargs)

    return outplace


class OperationMode(TorchDispatchMode):
    """Sees all operations, also those that nobody called from Python.

    They run in TorchScript, or as a part of a larger operation.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        # The way back computes with the same operations; it is not what is changed.
        if running_node() is None:
            family = func.__name__.partition(".")[0].removesuffix("_")
            note_unreachable(("torch", family))
        with DisableTorchFunction():  # it is no call from Python
            return func(*args, **(kwargs or {}))
