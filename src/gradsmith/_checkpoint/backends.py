"""Where a checkpointed function runs: by its arrays, or by those that it captures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .. import _tree
from .._arrays import framework_of
from .._tape import Traced
from .reach import reached

_MODULES = {"numpy": "on_engine", "torch": "torch", "jax": "jax"}
_MODULES["tensorflow"] = "tensorflow"


def backend_for(fn: Any, args: Any, kwargs: Any) -> Any:
    """The module that checkpoints on the arrays of a call."""
    return load(framework_for(fn, args, kwargs))


def load(framework: str) -> Any:
    return import_module(f"{__package__}.{_MODULES[framework]}")


def framework_for(fn: Any, args: Any, kwargs: Any) -> str:
    """The framework of the arguments; if they are plain, of what the function captures.

    A layer may be called with a NumPy array, or a function with nothing at all.
    """
    plain = True
    for x in _tree.leaves((args, kwargs)):
        found = framework_of(x)
        if found not in (None, "numpy"):
            return found
        plain = plain and not isinstance(x, Traced)
    if plain and any(name in sys.modules for name in ("torch", "tensorflow", "jax")):
        foreign = reached(fn, stop=lambda x: framework_of(x) not in (None, "numpy"))
        for x in foreign:
            return framework_of(x) or "numpy"
    return "numpy"


def compiled() -> Callable[..., Any] | None:
    """How to checkpoint what PyTorch's compiler is tracing, if it is."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.compiler.is_compiling():
        return load("torch").while_compiling
    return None
