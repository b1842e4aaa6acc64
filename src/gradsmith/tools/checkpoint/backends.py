"""Where a checkpointed function runs: by its arrays, or by those that it captures."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from ...core import trees
from ...core.arrays import framework_of
from ...core.import_hooks import once_imported
from ...core.reach import reached
from ...core.tape import Traced

_MODULES = {
    "numpy": "on_engine",
    "tensorflow": "tensorflow",
    "jax": "jax",
    "torch": "torch",
}
# How PyTorch says that it is compiling, and what is called then: its compiler traces
# the call, and could not trace the choice below.
COMPILERS: list[Any] = []


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
    for x in trees.leaves((args, kwargs)):
        found = framework_of(x)
        if found not in (None, "numpy"):
            return found
        plain = plain and not isinstance(x, Traced)
    if plain and any(name in sys.modules for name in ("torch", "tensorflow", "jax")):
        foreign = reached(fn, stop=lambda x: framework_of(x) not in (None, "numpy"))
        for x in foreign:
            return framework_of(x) or "numpy"
    return "numpy"


def _know_the_compiler(dynamo: Any) -> None:
    torch = sys.modules["torch"]
    COMPILERS.append((torch.compiler.is_compiling, load("torch").while_compiling))


once_imported("torch._dynamo", _know_the_compiler)
