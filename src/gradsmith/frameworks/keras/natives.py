"""Keras' layers and models, on whichever framework they run."""

from __future__ import annotations

import sys
from typing import Any

from ...core import trees
from ...core.arrays import FRAMEWORKS
from ...operations.info import OperationInfo, is_floating
from .._natives import info_of_module


def info_of(op: Any, framework: str) -> OperationInfo | None:
    """What is known of a layer of Keras that is built, and runs on a framework."""
    keras: Any = sys.modules.get("keras")
    layer = getattr(keras, "Layer", None)
    if layer is None or not isinstance(op, layer):
        return None
    if not op.built or keras.backend.backend() != framework:
        return None
    with FRAMEWORKS[framework].arrays.precision("float64"):
        call = WithVariables(op)
    return info_of_module(op, call, op.call, call.variables)


class WithVariables:
    """A layer as a function of its arguments and, by path, of its variables.

    Its other state (the seed of a dropout, a moving average) is the same each time. A
    layer computes in its own dtype, whatever it is given: in float64 a copy does.
    """

    def __init__(self, layer: Any) -> None:
        self._layers = {layer.variable_dtype: layer}
        copy = _in_double_precision(layer)
        if copy is not None:
            self._layers.setdefault("float64", copy)
        self._paths = [v.path for v in layer.trainable_variables]
        values = [v.value for v in layer.trainable_variables]
        self.variables = dict(zip(self._paths, values, strict=True))
        self._rest = [v.value for v in layer.non_trainable_variables]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = [kwargs.pop(p, self.variables[p]) for p in self._paths]
        layer = self._layer_for([*given, *trees.leaves((args, kwargs))])
        return layer.stateless_call(given, self._rest, *args, **kwargs)[0]

    def _layer_for(self, leaves: list[Any]) -> Any:
        dtype = next((_dtype_name(x) for x in leaves if is_floating(x)), None)
        if dtype is not None and dtype not in self._layers:
            raise TypeError(f"a layer in {', '.join(self._layers)} was given {dtype}")
        return self._layers[dtype or next(iter(self._layers))]


def _dtype_name(x: Any) -> str:
    return sys.modules["keras"].backend.standardize_dtype(x.dtype)


def _in_double_precision(layer: Any) -> Any:
    """A copy in float64, of a layer that can be saved; else None.

    On some frameworks Keras casts to float32 inside of layers in float64.
    """
    keras = sys.modules["keras"]
    if keras.backend.result_type("float64", "float32") != "float64":
        return None
    saving = keras.saving
    try:
        config = saving.serialize_keras_object(layer)
        copy = saving.deserialize_keras_object(_doubled(config), safe_mode=False)
    except Exception:  # the layer's own
        return None
    shapes = [[v.shape for v in each.variables] for each in (layer, copy)]
    return copy if copy.built and shapes[0] == shapes[1] else None


def _doubled(config: Any) -> Any:
    """A configuration with float64 for float32."""
    if isinstance(config, dict):
        policy = config.get("class_name") == "DTypePolicy"
        if policy or config.get("dtype") == "float32":
            changed = (
                {"config": {"name": "float64"}} if policy else {"dtype": "float64"}
            )
            config = config | changed
        return {key: _doubled(value) for key, value in config.items()}
    return [*map(_doubled, config)] if isinstance(config, (list, tuple)) else config
