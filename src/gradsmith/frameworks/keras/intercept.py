"""Keras: layers, on whichever framework they run."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any

import keras
import numpy as np

from ...core import trees
from ...core.patching import patched
from ...operations.info import signature_of
from .._intercept import (
    ProcessWide,
    Target,
    call_intercepted,
    first_intercepted,
    inside_model,
    is_intercepted,
    note_call,
)

TARGETS = "a Keras layer, the class or an instance"
RECOMPILE = ()


def target_of(given: Any) -> Target | None:
    """A layer, or a class of layers."""
    if isinstance(given, keras.Layer):
        return Target(_key(given), given.name, (_layers,), given, compiled=True)
    if inspect.isclass(given) and issubclass(given, keras.Layer):
        return Target(_key(given), given.__name__, (_layers,), given, compiled=True)
    return None


def model_of(model: Any) -> Target | None:
    if not isinstance(model, keras.Layer):
        return None
    return Target(_key(model), model.name, (_layers,), model)


def converted(fn: Any) -> Any:
    return fn


def _key(layer: Any) -> Hashable:
    return ("layer", id(layer))


@ProcessWide
@contextmanager
def _layers() -> Iterator[None]:
    """Calls of layers; one on symbols only builds a model."""
    theirs = keras.Layer.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        original = MethodType(theirs, self)
        if any(isinstance(x, keras.KerasTensor) for x in trees.leaves((args, kwargs))):
            return original(*args, **kwargs)
        with inside_model(self):
            keys = [_key(each) for each in (self, *type(self).__mro__)]
            key = first_intercepted(keys)
            if not is_intercepted(key):
                note_call(self.name)
                return original(*args, **kwargs)
            # As the layer itself would convert them
            args, kwargs = trees.map(_tensor, (args, kwargs))
            signature = signature_of(self.call)
            return call_intercepted(key, self.name, original, args, kwargs, signature)

    with patched(keras.Layer, __call__=call):
        yield


def _tensor(x: Any) -> Any:
    return keras.ops.convert_to_tensor(x) if isinstance(x, np.ndarray) else x
