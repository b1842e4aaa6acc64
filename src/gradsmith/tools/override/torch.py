"""PyTorch: functions by a function mode, modules by their calls."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ...core.errors import GradsmithError
from ...core.patching import patched as attributes
from .replacement import replaced
from .scope import Target, inside, is_due, saw
from .targets import refused
from .torch_calls import bare_of, is_inplace, of_copy, signature_for
from .torch_hidden import Hidden

# One operation has many names: torch.relu, torch.relu_, x.relu(), F.relu, aten.relu.
_HOMES = (
    "torch.nn.functional",
    "torch.functional",
    "torch._C",
    "torch._tensor",
    "torch._ops",
)


def target_of(given: Any) -> Target | None:
    """A module, its class, or a function of PyTorch's."""
    if inspect.isclass(given):
        if issubclass(given, torch.nn.Module):
            return _target(_module_key(given), given.__name__, given)
        if issubclass(given, torch.autograd.Function):
            raise refused(given, "whoever holds its `apply` is out of reach")
        return None
    if isinstance(given, torch.nn.Module):
        _refuse_script(given)
        return _target(_module_key(given), type(given).__name__, given)
    family = _family(given)
    if family is None:
        return None
    return _target(("torch", family), _title(given), given)


def _target(key: Any, name: str, given: Any) -> Target:
    modes, shared = (_Mode, Hidden), (_modules, *AFRESH)
    return Target(key, name, modes, shared, given, afresh=False)


def model_of(model: Any) -> Target | None:
    if not isinstance(model, torch.nn.Module):
        return None
    return Target(_module_key(model), type(model).__name__, (), (_modules,), model)


def _refuse_script(module: Any) -> None:
    if isinstance(module, torch.jit.ScriptModule):
        raise refused(module, "it is TorchScript, which does not run in Python")


def _module_key(module: Any) -> Any:
    return ("module", id(module))


def _family(fn: Any) -> str | None:
    """The name that an operation has in all of its forms: `relu` of `x.relu_()`."""
    name, module = _name(fn), getattr(fn, "__module__", None)
    owner = getattr(fn, "__objclass__", None)
    theirs = owner is torch._C.TensorBase or (
        module is not None and (module == "torch" or module.startswith(_HOMES))
    )
    if not (theirs and callable(fn) and name):
        return None
    return name if name.startswith("__") else name.removesuffix("_")


def _title(fn: Any) -> str:
    home = getattr(fn, "__module__", None) or "torch.Tensor"
    short = {"torch.nn.functional": "F", "torch._C._nn": "F"}.get(home, home)
    return f"{short}.{_name(fn)}"


def _name(fn: Any) -> str:
    """`relu` also of an overload, aten.relu.default."""
    return getattr(fn, "__name__", "").partition(".")[0]


class _Mode(TorchFunctionMode):
    """Sees the calls of PyTorch's functions, methods and operators from Python."""

    def __init__(self) -> None:
        super().__init__()
        self.running: list[Any] = []  # functions written in Python, as they are called

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        family = _family(func)
        if family is None:
            return self._call(func, args, kwargs)
        call = lambda *args, **kwargs: self._call(func, args, kwargs)
        return _replaced(("torch", family), _title(func), call, args, kwargs, func)

    def _call(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Run a function; we are off in here, but one in Python calls others."""
        bare = bare_of(func)
        if bare is None or func in self.running:
            return func(*args, **kwargs)
        self.running.append(func)
        try:
            with self:
                return bare(*args, **kwargs)
        finally:
            self.running.pop()


def _replaced(
    key: Any, name: str, original: Any, args: Any, kwargs: Any, called: Any
) -> Any:
    """A call by what a scope wants in its place; the result may go into its input."""
    if not is_due(key):
        saw(name)
        return original(*args, **kwargs)
    module = called if isinstance(called, torch.nn.Module) else None
    called = _original(module).forward if module is not None else called
    signature = signature_for(called, args, kwargs)
    if kwargs.get("out") is not None:
        raise GradsmithError(
            f"{name} is called with out=, which has no gradient\n  what to do: leave "
            "out= away, or override the function that calls it"
        )
    if not (args and is_inplace(name, kwargs, module)):
        return replaced(key, name, original, args, kwargs, signature)
    x, *rest = args
    y = replaced(key, name, of_copy(original), (x.clone(), *rest), kwargs, signature)
    return x.copy_(y)


@contextmanager
def _modules() -> Iterator[None]:
    """Calls of modules."""
    theirs = torch.nn.Module.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        original, name = MethodType(theirs, self), type(self).__name__
        inner = _original(self)
        with inside(self, inner):
            classes = (*type(self).__mro__, *type(inner).__mro__)
            keys = [_module_key(each) for each in (self, inner, *classes)]
            key = next((key for key in keys if is_due(key)), keys[0])
            return _replaced(key, name, original, args, kwargs, self)

    with attributes(torch.nn.Module, __call__=call):
        yield


def _original(module: Any) -> Any:
    """What `torch.compile` was given, whose own call nobody makes; else the module."""
    compiled = isinstance(module, torch._dynamo.OptimizedModule)
    return module._orig_mod if compiled else module


def _eagerly() -> Any:
    """Compiled functions run as they are written: what is compiled is out of reach."""
    return torch.compiler.set_stance("force_eager")


AFRESH = (_eagerly,)
