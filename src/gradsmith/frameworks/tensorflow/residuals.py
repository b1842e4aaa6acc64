"""What TensorFlow's eager tape keeps, as far as it can be known.

A tape holds the very tensors that its gradient functions need: of those that operations
returned, the ones that are still alive after the run are kept by it.
"""

from __future__ import annotations

from typing import Any
from weakref import ref

import tensorflow as tf

from ...core import trees
from ...core.places import Place, place_here
from .._protocol import Residual
from .call.specs import is_floating
from .private import after_operations, functions_run_eagerly

NOTES = (
    "TensorFlow reports this in eager mode only: a tf.function was run eagerly, and "
    "its compiled form may keep other arrays",
)


def residuals(fn: Any, args: Any, kwargs: Any) -> list[Residual]:
    """The arrays that a gradient keeps."""
    made: list[tuple[str, Place | None, Any]] = []

    def see(name: str, xs: Any, attrs: Any, ys: Any) -> None:
        if name != "ReadVariableOp":  # the variable's own memory
            place = place_here()
            made.extend((name, place, ref(y)) for y in ys)

    args, kwargs = trees.map(_tensor, (args, kwargs))
    tape = tf.GradientTape()
    with tape:
        tape.watch([x for x in trees.leaves((args, kwargs)) if _is_input(x)])
        with functions_run_eagerly(), after_operations(see):
            result = fn(*args, **kwargs)
    own = {id(y) for y in trees.leaves(result)}
    del result
    found = []
    for name, place, reference in made:
        y = reference()
        if y is not None and id(y) not in own:
            own.add(id(y))
            found.append(Residual(name, place, int(tf.size(y)) * y.dtype.size))
    return found


def _is_input(x: Any) -> bool:
    return isinstance(x, tf.Tensor) and is_floating(x)


def _tensor(x: Any) -> Any:
    return tf.identity(x) if isinstance(x, tf.Tensor) else x
