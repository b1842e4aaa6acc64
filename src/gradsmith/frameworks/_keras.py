"""Operations as activations and losses in the files of Keras.

Of a function Keras saves the name that it is registered by, of an object of another
class a configuration, which the class makes the object from. An operation's is the name
of the function that it was.
"""

from __future__ import annotations

from typing import Any

from ..core.errors import GradsmithError
from ..core.import_hooks import once_imported


def save_by_name(kind: type) -> None:
    """Let Keras find a class of operations when it loads a file."""
    once_imported(
        "keras",
        lambda keras: keras.saving.register_keras_serializable("gradsmith")(kind),
    )


def config_of(operation: Any) -> dict[str, Any]:
    """What is saved of an operation."""
    import keras

    return {"name": keras.saving.get_registered_name(operation)}


def from_config(config: dict[str, Any]) -> Any:
    """The operation that was saved."""
    import keras

    name = config["name"]
    found = keras.saving.get_registered_object(name)
    if found is None:
        raise GradsmithError(
            f"Keras loads a file with operation {name!r} in it, which is not there: "
            "put @keras.saving.register_keras_serializable() above its definition and "
            f"import that first, or load with custom_objects={{{name!r}: ...}}"
        )
    return found
