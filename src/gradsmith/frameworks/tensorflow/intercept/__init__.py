"""TensorFlow: operations, run one by one or put into a graph.

What was compiled runs by its Python again; what has none any more, node by node.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

import keras
import tensorflow as tf

from ....core.patching import is_patched_function, patched
from ..._intercept import ProcessWide, Target, not_interceptable
from ..private import Function, autograph_conversion, op_def_registry
from ..private import autographed as converted
from .nodes import traced_functions
from .operations import eager_operations, graph_operations

__all__ = ["RECOMPILE", "TARGETS", "converted", "target_of"]

TARGETS = "a function of TensorFlow's, or the name of an operation ('Relu')"


def target_of(given: Any) -> Target | None:
    """The name of an operation ("Relu"), or a function that is one operation."""
    kind = given if isinstance(given, str) else _operation_of(given)
    if kind is None:
        return None
    if op_def_registry.get(kind) is None:
        near = get_close_matches(kind, dir(tf.raw_ops), 1, 0.5)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        why = f"TensorFlow has no operation of this name{hint}"
        raise not_interceptable(given, why)
    contexts = (eager_operations, graph_operations, traced_functions, *RECOMPILE)
    return Target(("tensorflow", kind), kind, contexts, given)


def _operation_of(fn: Any) -> str | None:
    """The type of the operation that a function is: "Relu" of `tf.nn.relu`.

    The function is TensorFlow's or Keras', and is tried on symbols. What is made of
    several operations is none; it can be changed as the function that it is.
    """
    if not callable(fn) or inspect.isclass(fn):
        return None
    root = (getattr(fn, "__module__", None) or "").partition(".")[0]
    if root == "keras" and keras.backend.backend() != "tensorflow":
        return None
    if root not in ("tensorflow", "keras"):
        return None
    raw = [name for name in dir(tf.raw_ops) if getattr(tf.raw_ops, name) is fn]
    return raw[0] if raw else next(filter(None, map(_tried, [fn] * 3, (1, 2, 3))), None)


def _tried(fn: Any, n: int) -> str | None:
    with tf.Graph().as_default() as graph:
        xs = [tf.compat.v1.placeholder(tf.float32, [2, 2]) for _ in range(n)]
        before = len(graph.get_operations())
        try:
            y = fn(*xs)
        except Exception:  # these arguments are not what it wants
            return None
        made = graph.get_operations()[before:]
    if len(made) != 1 or getattr(y, "op", None) is not made[0]:
        return None
    same = len(made[0].inputs) == n and all(
        map(lambda a, b: a is b, made[0].inputs, xs)
    )
    return made[0].type if same else None


@ProcessWide
@contextmanager
def _eagerly() -> Iterator[None]:
    """What was compiled is out of reach: let its Python run again."""
    before = tf.config.functions_run_eagerly()
    theirs = Function.__call__
    known = autograph_conversion.is_in_allowlist_cache

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if before or tf.executing_eagerly() or not self._autograph:
            return theirs(self, *args, **kwargs)
        return converted(self.python_function)(*args, **kwargs)

    def leave_alone(fn: Any, options: Any) -> bool:
        # What replaces a function is not its source; the original is rewritten later.
        return is_patched_function(fn) or known(fn, options)

    tf.config.run_functions_eagerly(True)
    try:
        with (
            warnings.catch_warnings(),
            patched(Function, __call__=call),
            patched(autograph_conversion, is_in_allowlist_cache=leave_alone),
        ):
            # The functions of a tf.data pipeline stay compiled, which nobody minds.
            warnings.filterwarnings("ignore", "Even though the `tf.config.experimental")
            yield
    finally:
        tf.config.run_functions_eagerly(before)


RECOMPILE = (_eagerly,)
