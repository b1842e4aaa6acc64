"""Which part of a program a target is, and who can intercept its calls."""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module
from typing import Any

from ...core.errors import GradsmithError
from . import engine, functions
from .scope import Target

# Whose targets they may be, if they are loaded; Keras runs on any of the others
_FRAMEWORKS = ("keras", "torch", "tensorflow", "jax")


def target_of(given: Any) -> Target:
    """What a key of the dict stands for; an error if its calls can't be changed."""
    for module in _modules():
        found = module.target_of(given)
        if found is not None:
            return _afresh(found) if found.afresh else found
    raise refused(given, "nobody knows when it is called")


def model_of(model: Any) -> Target | None:
    """How to know when a model is called; None if one can't."""
    for module in _modules():
        found = module.model_of(model) if hasattr(module, "model_of") else None
        if found is not None:
            return found
    return None


def _modules() -> list[Any]:
    loaded = [name for name in _FRAMEWORKS if name in sys.modules]
    theirs = [import_module(f"{__package__}.{name}") for name in loaded]
    return [engine, *theirs, functions]


def _afresh(target: Target) -> Target:
    """A target with what lets Python run again that any framework has compiled."""
    contexts, shared = target.contexts, target.shared
    for module in _modules():
        contexts += getattr(module, "AFRESH_IN_SCOPE", ())
        shared += getattr(module, "AFRESH", ())
    return replace(target, contexts=contexts, shared=shared)


def refused(given: Any, why: str) -> GradsmithError:
    """A target whose calls can't be changed."""
    return GradsmithError(
        f"{given!r} can't be overridden: {why}\n"
        "  expected: a Python function; an operation of ours; a function of NumPy, "
        "TensorFlow (or the name of an operation, 'Relu'), JAX (or a primitive) or "
        "PyTorch; a Keras layer or a torch module, the class or an instance\n"
        "  what to do: override the function or layer that calls it; a framework must "
        "be imported first"
    )
