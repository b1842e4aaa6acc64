"""Keras, whose variables have an array of one of the frameworks inside.

Operations can be activations and losses in its files: of a function Keras saves the
name that it is registered by, of an object of another class a configuration, which the
class makes the object from. An operation's is the name of the function that it was.
"""

from __future__ import annotations

import sys
from typing import Any

from ...core.arrays import register_wrapper
from ...core.errors import GradsmithError
from ...core.import_hooks import once_imported
from ...operations.operation import Operation


class _Variables:
    """Keras' variables, which are arrays of its backend."""

    root = "keras"

    def framework_of(self, x: Any) -> str | None:
        keras = sys.modules["keras"]
        known = isinstance(x, (keras.Variable, keras.KerasTensor))
        return keras.backend.backend() if known else None

    def inside(self, x: Any, caller: str) -> Any:
        if hasattr(x, "value"):
            return x.value  # as a layer reads it: cast, if it computes in float16
        raise GradsmithError(
            f"{caller} was given a KerasTensor, which has no values\n"
            "  expected: arrays\n"
            "  what to do: call it inside the `call` of a keras.Layer (or in a "
            "keras.layers.Lambda), and that layer on the KerasTensor"
        )


def _config_of(operation: Operation) -> dict[str, Any]:
    """What is saved of an activation or a loss."""
    import keras

    return {"name": keras.saving.get_registered_name(operation)}


def _from_config(cls: type[Operation], config: dict[str, Any]) -> Any:
    """What was saved: the operation of that name."""
    import keras

    name = config["name"]
    found = keras.saving.get_registered_object(name)
    if found is None:
        raise GradsmithError(
            f"Keras loads a file with operation {name!r}, which is not registered: "
            "put @keras.saving.register_keras_serializable() above its definition and "
            f"import that first, or load with custom_objects={{{name!r}: ...}}"
        )
    return found


def _save_by_name(keras: Any) -> None:
    """Let Keras find operations when it loads a file."""
    setattr(Operation, "get_config", _config_of)  # noqa: B010
    setattr(Operation, "from_config", classmethod(_from_config))  # noqa: B010
    from ...operations.python_op import PythonOperation

    for kind in (Operation, PythonOperation):
        keras.saving.register_keras_serializable("gradsmith")(kind)


register_wrapper(_Variables())
once_imported("keras", _save_by_name)
