"""Operations of ours, on whichever framework's arrays."""

from __future__ import annotations

import sys
from functools import partial, wraps
from importlib import import_module
from typing import Any

import numpy as np

from ...core import trees
from ...core.arrays import framework_of
from ...core.import_hooks import once_imported
from ...core.tensor import unwrap
from .hooks import Hooks
from .place import Place, place_of
from .recorder import Recorder
from .seen import Seen


def install(hooks: Hooks, module: Any) -> None:
    hooks.replace(module.Operation, "__call__", partial(_recording, hooks.recorder))


def _recording(recorder: Recorder, call: Any) -> Any:
    def record(operation: Any, args: Any, kwargs: Any) -> None:
        record_operation(recorder, operation, (args, kwargs), read)

    @wraps(call)
    def recording(self: Any, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        record(self, args, kwargs)
        return call(self, *args, **kwargs)

    once_imported("torch._dynamo", partial(_hide, record))
    return recording


def _hide(record: Any, dynamo: Any) -> None:
    """Let Dynamo trace an operation as if nobody looked; `dynamo.py` looks itself."""

    def nothing(operation: Any, args: Any, kwargs: Any) -> None:
        return None

    sys.modules["torch"].compiler.substitute_in_graph(record)(nothing)


def record_operation(
    recorder: Recorder, operation: Any, inputs: Any, read: Any, framework: str = ""
) -> None:
    operation = operation.original or operation
    framework = framework or _framework(inputs)
    place = partial(_place_of, operation)
    recorder.record(framework, operation, place, inputs, read, operation.fn)


def _framework(inputs: Any) -> str:
    found = map(framework_of, trees.leaves(inputs))
    return next((name for name in found if name is not None), "numpy")


def _place_of(operation: Any) -> Place:
    rules = () if operation.closure else (operation.vjp_rule, operation.jvp_rule)
    written = [rule for rule in rules if rule is not None]
    name = getattr(operation, "__qualname__", operation.name)
    rule, body = place_of(name, *written, operation.fn), place_of(name, operation.fn)
    # Somebody else's function that was given a gradient is who gave it's operation.
    return body if body.module == rule.module else rule


def read(x: Any) -> Seen | None:
    """What is seen of an array, of whichever framework."""
    name = framework_of(x)
    if name is None:
        return None
    if name != "numpy":
        return import_module(f"{__package__}.{name}").read(x)
    value = unwrap(x)  # not x.numpy(), by which it leaves a tape
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fciub":
        return None
    return Seen(value.shape, str(value.dtype), lambda: np.array(value))
