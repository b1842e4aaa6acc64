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
from ...frameworks.tensorflow.call.specs import is_floating
from ...frameworks.tensorflow.private import add_op_callback, remove_op_callback
from .model import Kept

_NOTE = (
    "TensorFlow tells this of eager mode alone: a tf.function was run eagerly, and its "
    "compiled form may keep other arrays"
)


def look(fn: Any, args: Any, kwargs: Any) -> tuple[list[Kept], tuple[str, ...]]:
    made: list[tuple[str, Place | None, Any]] = []

    def see(kind: Any, xs: Any, attrs: Any, ys: Any, *_: Any, **__: Any) -> None:
        name = kind.decode() if isinstance(kind, bytes) else str(kind)
        if name == "ReadVariableOp":  # the variable's own memory
            return
        place = place_here()
        made.extend((name, place, ref(y)) for y in ys if hasattr(y, "numpy"))

    args, kwargs = trees.map(_tensor, (args, kwargs))
    eagerly = tf.config.functions_run_eagerly()
    tape = tf.GradientTape()
    with tape:
        tape.watch([x for x in trees.leaves((args, kwargs)) if _is_input(x)])
        add_op_callback(see)
        try:
            tf.config.run_functions_eagerly(True)
            result = fn(*args, **kwargs)
        finally:
            tf.config.run_functions_eagerly(eagerly)
            remove_op_callback(see)
    own = {id(y) for y in trees.leaves(result)}
    del result
    found = []
    for name, place, reference in made:
        y = reference()
        if y is not None and id(y) not in own:
            own.add(id(y))
            found.append(Kept(name, place, int(tf.size(y)) * y.dtype.size))
    return found, (_NOTE,)


def _is_input(x: Any) -> bool:
    return isinstance(x, tf.Tensor) and is_floating(x)


def _tensor(x: Any) -> Any:
    return tf.identity(x) if isinstance(x, tf.Tensor) else x
